# What every target of ours is compiled with (gexec_build) and what the library
# stands on (gexec_dependencies).

set(GX_HAVE_NVTX 0)
if(GEXEC_NVTX AND GX_HAVE_CUDA)
    find_path(GX_NVTX_INCLUDE nvtx3/nvToolsExt.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    mark_as_advanced(GX_NVTX_INCLUDE)
    if(GX_NVTX_INCLUDE)
        set(GX_HAVE_NVTX 1)
    else()
        message(STATUS "NVTX: nvtx3/nvToolsExt.h not found; building without ranges")
    endif()
endif()

# Of the toolkit alone: another's headers would ask for another library. It is loaded when
# a trace is asked for, and never linked.
set(GX_HAVE_CUPTI 0)
if(GEXEC_CUPTI AND GX_HAVE_CUDA)
    cmake_path(GET CUDAToolkit_BIN_DIR PARENT_PATH gx_cuda_root)
    find_path(GX_CUPTI_INCLUDE cupti.h NO_DEFAULT_PATH
              PATHS ${CUDAToolkit_INCLUDE_DIRS} ${gx_cuda_root}/extras/CUPTI/include)
    mark_as_advanced(GX_CUPTI_INCLUDE)
    if(GX_CUPTI_INCLUDE)
        set(GX_HAVE_CUPTI 1)
        set(gx_cupti_folders ${gx_cuda_root}/extras/CUPTI/lib64 ${gx_cuda_root}/lib64)
        list(JOIN gx_cupti_folders ":" gx_cupti_folders)
    else()
        message(STATUS "CUPTI: cupti.h not found in ${gx_cuda_root}; building without "
                       "traces of our own (gexec profile)")
    endif()
endif()

add_library(gexec_build INTERFACE)
target_compile_definitions(gexec_build INTERFACE
    GX_HAVE_CUDA=${GX_HAVE_CUDA} GX_HAVE_NVTX=${GX_HAVE_NVTX}
    GX_HAVE_CUPTI=${GX_HAVE_CUPTI} GX_TEST_DELAYS=$<BOOL:${GEXEC_TEST_DELAYS}>
    $<$<COMPILE_LANGUAGE:C>:_XOPEN_SOURCE=700;_FILE_OFFSET_BITS=64>)
if(GX_HAVE_CUDA)
    # "90-real;120-virtual" as "sm_90 compute_120", for messages.
    set(gx_built_for ${CMAKE_CUDA_ARCHITECTURES})
    list(TRANSFORM gx_built_for REPLACE "^([0-9]+[a-z]?)-virtual$" "compute_\\1")
    list(TRANSFORM gx_built_for REPLACE "^([0-9]+[a-z]?)(-real)?$" "sm_\\1")
    list(JOIN gx_built_for " " gx_built_for)
    target_compile_definitions(gexec_build INTERFACE
        $<$<COMPILE_LANGUAGE:C>:GX_CUDA_ARCHITECTURES="${gx_built_for}">)
endif()
target_compile_options(gexec_build INTERFACE
    $<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wpedantic;-Wshadow>
    $<$<COMPILE_LANGUAGE:C>:-Wconversion;-Wstrict-prototypes;-Wmissing-prototypes;-Wvla>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra>
    # No C++ run time is linked. The one static variable is in the stub that nvcc writes
    # for a kernel, which only a <<<>>> launch would run: we have none.
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-exceptions,-fno-rtti,-fno-threadsafe-statics>)
if(GEXEC_WERROR)
    target_compile_options(gexec_build INTERFACE
        $<$<COMPILE_LANGUAGE:C,CXX>:-Werror>
        "$<$<COMPILE_LANGUAGE:CUDA>:SHELL:-Werror all-warnings>")
endif()

set(gx_sanitizers ${GEXEC_SANITIZE})
if(GEXEC_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "GEXEC_FUZZ needs clang; the C compiler is "
            "${CMAKE_C_COMPILER_ID}. Configure with CC=clang in a fresh build folder.")
    endif()
    target_compile_options(gexec_build INTERFACE
        $<$<COMPILE_LANGUAGE:C>:-fsanitize=fuzzer-no-link>)
endif()
if(GEXEC_SANITIZE)
    # Host code of .cu files is left out: nvcc may use another compiler than C's.
    target_compile_options(gexec_build INTERFACE
        $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${GEXEC_SANITIZE};-fno-sanitize-recover=all>
        $<$<COMPILE_LANGUAGE:C,CXX>:-fno-omit-frame-pointer>)
    target_link_options(gexec_build INTERFACE -fsanitize=${GEXEC_SANITIZE})
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(YAML REQUIRED yaml-0.1)

# The archive where there is one, so that the program runs where libyaml is not.
pkg_get_variable(gx_yaml_folder yaml-0.1 libdir)
find_library(GX_YAML_LIBRARY NAMES libyaml.a yaml
             HINTS ${gx_yaml_folder} ${YAML_LIBRARY_DIRS})
mark_as_advanced(GX_YAML_LIBRARY)
add_library(gexec_yaml INTERFACE)
target_include_directories(gexec_yaml SYSTEM INTERFACE ${YAML_INCLUDE_DIRS})
target_link_libraries(gexec_yaml INTERFACE ${GX_YAML_LIBRARY})
if(GX_YAML_LIBRARY MATCHES "\\.a$")
    target_compile_definitions(gexec_yaml INTERFACE YAML_DECLARE_STATIC)
endif()

# Never the driver's library: the program has to start where there is no driver.
set(gx_library_places $ORIGIN)
add_library(gexec_dependencies INTERFACE)
target_link_libraries(gexec_dependencies INTERFACE
    gexec_yaml m ${CMAKE_DL_LIBS} Threads::Threads)
if(GX_HAVE_CUDA)
    target_link_libraries(gexec_dependencies INTERFACE
        CUDA::cublasLt CUDA::cudart_static rt)
    get_target_property(gx_cublaslt CUDA::cublasLt IMPORTED_LOCATION)
    cmake_path(GET gx_cublaslt PARENT_PATH gx_cublaslt_folder)
    list(APPEND gx_library_places ${gx_cublaslt_folder})
endif()

# What reads other tools' profiles. Each may be absent: the program then says what it
# lacks. Archives where there are any, as with libyaml.
add_library(gexec_readers INTERFACE)
function(gx_reader_library name module macro)
    pkg_check_modules(GX_${macro} QUIET ${module})
    set(have 0)
    if(GX_${macro}_FOUND)
        pkg_get_variable(folder ${module} libdir)
        find_library(GX_${macro}_LIBRARY NAMES ${ARGN} HINTS ${folder})
        mark_as_advanced(GX_${macro}_LIBRARY)
        if(GX_${macro}_LIBRARY)
            set(have 1)
            target_include_directories(gexec_readers SYSTEM INTERFACE
                                       ${GX_${macro}_INCLUDE_DIRS})
            target_link_libraries(gexec_readers INTERFACE ${GX_${macro}_LIBRARY})
        endif()
    endif()
    if(NOT have)
        message(STATUS "${name}: not found; `gexec nsys` will lack what it reads")
    endif()
    target_compile_definitions(gexec_readers INTERFACE GX_HAVE_${macro}=${have})
endfunction()
gx_reader_library("SQLite" sqlite3 SQLITE libsqlite3.a sqlite3)
gx_reader_library("YAJL" yajl YAJL libyajl_s.a yajl)
gx_reader_library("zlib" zlib ZLIB libz.a z)
target_link_libraries(gexec_readers INTERFACE m ${CMAKE_DL_LIBS} Threads::Threads)

# The C files of a folder; those named *_cuda.c or cuda_*.c need CUDA's headers, and
# *_cupti.c those of CUPTI.
function(gx_c_sources folder pattern result)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/${pattern})
    if(NOT GX_HAVE_CUDA)
        list(FILTER sources EXCLUDE REGEX "/(cuda_[^/]*|[^/]*_cuda)\\.c$")
    endif()
    if(NOT GX_HAVE_CUPTI)
        list(FILTER sources EXCLUDE REGEX "/[^/]*_cupti\\.c$")
    endif()
    set(${result} ${sources} PARENT_SCOPE)
endfunction()

# A layer: its C files, its kernels but those in GX_KERNELS_APART, its folder, and the
# layers to its left.
function(gx_layer name)
    gx_c_sources(${CMAKE_CURRENT_SOURCE_DIR} "*.c" sources)
    if(GX_HAVE_CUDA)
        file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cu)
        foreach(kernel ${GX_KERNELS_APART})
            list(REMOVE_ITEM kernels ${CMAKE_CURRENT_SOURCE_DIR}/${kernel})
        endforeach()
    endif()
    file(GLOB headers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.h)
    add_library(${name} OBJECT ${sources} ${kernels} ${headers})
    target_include_directories(${name} PUBLIC ${CMAKE_CURRENT_SOURCE_DIR}
                                              ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${name} PUBLIC ${ARGN} PRIVATE gexec_build)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C)
endfunction()

# A program of ours looks for libraries beside itself, then in the toolkit. One path
# for build tree and installation: CMake would pad the former with an empty entry,
# which means the current folder.
function(gx_program name)
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE C BUILD_WITH_INSTALL_RPATH ON
        INSTALL_RPATH "${gx_library_places}")
endfunction()
