/* Memory of the emulated card: what kernels are given, and what blocks share. */
#ifndef EMULATE_MEMORY_H
#define EMULATE_MEMORY_H

#include <stddef.h>
#include <stdint.h>

#include <memory>
#include <vector>

namespace emulate
{

/* [guard][bytes][guard], of which sanitizers let nobody touch the guards. */
struct guarded {
    unsigned char *block, *data;
    size_t bytes;
    bool is_steady = false;
    std::vector<unsigned char> held; /* while a kernel may not see it */

    explicit guarded(size_t n);
    guarded(const guarded &) = delete;
    guarded &operator=(const guarded &) = delete;
    ~guarded();

    /* Where a guard zone was written, from the beginning of the memory; 0: nowhere. */
    ptrdiff_t find_damage();
    /* NaNs until the release. */
    void hold();
    void release();

  private:
    void open();
    void close();
};

extern std::vector<std::unique_ptr<guarded>> global_memory; /* of emulate_alloc */

/* --- __shared__ variables, of which the program has one copy --- */

void find_variables(); /* before all others */
size_t variable_bytes();
void poison_variables();
/* To and from a copy of variable_bytes(). */
void save_variables(unsigned char *copy);
void load_variables(const unsigned char *copy);
/* The offset of an address in the variables, and of that in a copy; false: there is none.
 */
bool find_variable(const void *at, uint32_t *offset);
bool find_in_copy(uint32_t offset, size_t bytes, size_t *at);
/* The variable that is in place. */
unsigned char *variable_at(uint32_t offset);

} // namespace emulate

#endif
