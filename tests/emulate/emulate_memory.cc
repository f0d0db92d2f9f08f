/* Memory with guard zones, and the variables that blocks share. */
#include "emulate_memory.h"

#include <elf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <utility>

#include "emulate.h"

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define __SANITIZE_ADDRESS__ 1
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

/* What thread-local variables are found from. */
thread_local char emulate_anchor;

namespace emulate
{

std::vector<std::unique_ptr<guarded>> global_memory;

namespace
{

constexpr unsigned char POISON = 0xff; /* a NaN of every type */
constexpr size_t GUARD = 256;

} // namespace

/* --- memory with guard zones --- */

guarded::guarded(size_t n) : bytes(n)
{
    const size_t all = (GUARD + n + GUARD + GUARD - 1) / GUARD * GUARD;

    block = static_cast<unsigned char *>(aligned_alloc(GUARD, all));
    if (block == nullptr)
        abort();
    data = block + GUARD;
    memset(block, POISON, GUARD + n + GUARD);
    close();
}

guarded::~guarded()
{
    open();
    free(block);
}

void guarded::open()
{
    ASAN_UNPOISON_MEMORY_REGION(block, GUARD);
    ASAN_UNPOISON_MEMORY_REGION(data + bytes, GUARD);
}

void guarded::close()
{
    ASAN_POISON_MEMORY_REGION(block, GUARD);
    ASAN_POISON_MEMORY_REGION(data + bytes, GUARD);
}

ptrdiff_t guarded::find_damage()
{
    ptrdiff_t at = 0;

    open();
    for (ptrdiff_t i = 0; i < (ptrdiff_t)GUARD && at == 0; i++) {
        if (data[bytes + (size_t)i] != POISON)
            at = (ptrdiff_t)bytes + i;
        else if (data[-1 - i] != POISON)
            at = -1 - i;
    }
    close();
    return at;
}

void guarded::hold()
{
    held.assign(data, data + bytes);
    memset(data, POISON, bytes);
}

void guarded::release()
{
    if (!held.empty())
        memcpy(data, held.data(), bytes);
    held.clear();
}

/* --- variables --- */

namespace
{

struct piece {
    unsigned char *at;
    size_t bytes;
};
std::vector<piece> variables;
bool are_found;

std::vector<char> read_program()
{
    std::vector<char> bytes;
    FILE *file = fopen("/proc/self/exe", "rb");
    char part[65536];

    if (file == nullptr)
        abort();
    for (size_t n; (n = fread(part, 1, sizeof part, file)) > 0;)
        bytes.insert(bytes.end(), part, part + n);
    fclose(file);
    return bytes;
}

/* Thread-local variables of functions, as the symbol table has them: sanitizers may have
 * some of their own. */
bool is_shared(const char *name)
{
    return strncmp(name, "_ZZ", 3) == 0 && strstr(name, "__sanitizer") == nullptr &&
           strstr(name, "__asan") == nullptr && strstr(name, "__ubsan") == nullptr;
}

} // namespace

void find_variables()
{
    if (are_found)
        return;
    are_found = true;

    const std::vector<char> program = read_program();
    Elf64_Ehdr header;
    std::vector<std::pair<uint64_t, size_t>> found;
    const unsigned char *anchor = reinterpret_cast<unsigned char *>(&emulate_anchor);
    bool has_anchor = false;

    memcpy(&header, program.data(), sizeof header);
    const auto *sections =
        reinterpret_cast<const Elf64_Shdr *>(program.data() + header.e_shoff);

    for (unsigned s = 0; s < header.e_shnum; s++) {
        if (sections[s].sh_type != SHT_SYMTAB)
            continue;
        const char *names = program.data() + sections[sections[s].sh_link].sh_offset;
        const auto *symbols =
            reinterpret_cast<const Elf64_Sym *>(program.data() + sections[s].sh_offset);

        for (size_t i = 0; i < sections[s].sh_size / sizeof *symbols; i++) {
            const char *name = names + symbols[i].st_name;

            if (ELF64_ST_TYPE(symbols[i].st_info) != STT_TLS)
                continue;
            if (strcmp(name, "emulate_anchor") == 0) {
                anchor -= symbols[i].st_value;
                has_anchor = true;
            } else if (is_shared(name)) {
                found.emplace_back(symbols[i].st_value, symbols[i].st_size);
            }
        }
    }
    if (!has_anchor) {
        fprintf(stderr, "emulate: this program has no symbol table\n");
        abort();
    }
    std::sort(found.begin(), found.end());
    for (const auto &[offset, bytes] : found)
        variables.push_back({ const_cast<unsigned char *>(anchor) + offset, bytes });
}

size_t variable_bytes()
{
    size_t bytes = 0;

    for (const piece &each : variables)
        bytes += each.bytes;
    return bytes;
}

void poison_variables()
{
    for (const piece &each : variables)
        memset(each.at, POISON, each.bytes);
}

void save_variables(unsigned char *copy)
{
    for (const piece &each : variables) {
        memcpy(copy, each.at, each.bytes);
        copy += each.bytes;
    }
}

void load_variables(const unsigned char *copy)
{
    for (const piece &each : variables) {
        memcpy(each.at, copy, each.bytes);
        copy += each.bytes;
    }
}

bool find_variable(const void *at, uint32_t *offset)
{
    const auto *byte = static_cast<const unsigned char *>(at);

    for (const piece &each : variables) {
        if (byte < each.at || byte >= each.at + each.bytes)
            continue;
        *offset = (uint32_t)(byte - variables[0].at);
        return true;
    }
    return false;
}

bool find_in_copy(uint32_t offset, size_t bytes, size_t *at)
{
    size_t before = 0;

    for (const piece &each : variables) {
        const size_t from = (size_t)(each.at - variables[0].at);

        if (offset >= from && offset + bytes <= from + each.bytes) {
            *at = before + (offset - from);
            return true;
        }
        before += each.bytes;
    }
    return false;
}

unsigned char *variable_at(uint32_t offset)
{
    return variables[0].at + offset;
}

} // namespace emulate

/* --- what tests call --- */

using emulate::global_memory;

static emulate::guarded *find_memory(const void *memory)
{
    for (auto &each : global_memory) {
        if (each->data == memory)
            return each.get();
    }
    fprintf(stderr, "emulate: %p is no memory of emulate_alloc\n", memory);
    abort();
}

extern "C" void *emulate_alloc(size_t bytes)
{
    global_memory.push_back(std::make_unique<emulate::guarded>(bytes));
    return global_memory.back()->data;
}

extern "C" void emulate_free(void *memory)
{
    const emulate::guarded *found = find_memory(memory);

    global_memory.erase(
        std::find_if(global_memory.begin(), global_memory.end(),
                     [&](const auto &each) { return each.get() == found; }));
}

extern "C" void emulate_steady(void *memory, bool is_steady)
{
    find_memory(memory)->is_steady = is_steady;
}
