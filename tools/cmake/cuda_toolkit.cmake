# Looks for a CUDA toolkit and fixes the architectures, both before a language is
# enabled. Sets GX_HAVE_CUDA, and then CMAKE_CUDA_COMPILER and
# CMAKE_CUDA_ARCHITECTURES; otherwise GX_NO_CUDA_REASON.

set(GX_CUDA_OLDEST 12.4)

# Version of an nvcc as "12.4"; empty when it does not run.
function(gx_nvcc_version nvcc result)
    execute_process(COMMAND ${nvcc} --version OUTPUT_VARIABLE text ERROR_QUIET
                    RESULT_VARIABLE rc)
    set(version "")
    if(rc EQUAL 0 AND text MATCHES "release ([0-9]+\\.[0-9]+)")
        set(version ${CMAKE_MATCH_1})
    endif()
    set(${result} "${version}" PARENT_SCOPE)
endfunction()

# Every nvcc that the user, the environment or the usual places name, best first.
function(gx_nvcc_candidates result)
    set(found "")
    if(GEXEC_CUDA_ROOT)
        set(places ${GEXEC_CUDA_ROOT}/bin/nvcc)
    else()
        set(places ${CMAKE_CUDA_COMPILER} $ENV{CUDACXX})
        foreach(root ${CUDAToolkit_ROOT} $ENV{CUDAToolkit_ROOT} $ENV{CUDA_HOME}
                     $ENV{CUDA_PATH})
            list(APPEND places ${root}/bin/nvcc)
        endforeach()
        find_program(on_path nvcc NO_CACHE NO_CMAKE_PATH NO_CMAKE_SYSTEM_PATH)
        if(on_path)
            list(APPEND places ${on_path})
        endif()
        list(APPEND places /usr/local/cuda/bin/nvcc
                           ${CMAKE_SOURCE_DIR}/build/cuda/bin/nvcc)
    endif()
    foreach(place ${places})
        if(NOT IS_ABSOLUTE "${place}")
            unset(resolved)
            find_program(resolved ${place} NO_CACHE)
            set(place "${resolved}")
        endif()
        if(EXISTS "${place}")
            list(APPEND found "${place}")
        endif()
    endforeach()
    list(REMOVE_DUPLICATES found)
    set(${result} "${found}" PARENT_SCOPE)
endfunction()

# Real code for every architecture from sm_80 that this nvcc lists, and PTX of the
# newest, so that cards that come later can run it too.
function(gx_all_architectures nvcc result)
    execute_process(COMMAND ${nvcc} --list-gpu-code OUTPUT_VARIABLE text
                    COMMAND_ERROR_IS_FATAL ANY)
    string(REGEX MATCHALL "sm_[0-9]+" codes "${text}")
    list(TRANSFORM codes REPLACE "sm_" "")
    list(REMOVE_DUPLICATES codes)
    list(SORT codes COMPARE NATURAL)
    set(wanted "")
    foreach(code ${codes})
        if(code GREATER_EQUAL 80)
            list(APPEND wanted ${code}-real)
            set(newest ${code})
        endif()
    endforeach()
    set(${result} ${wanted} ${newest}-virtual PARENT_SCOPE)
endfunction()

# `native` without a card yields nothing that a compiler can use, so the card is
# asked here, and where there is none every architecture is built.
function(gx_native_architectures nvcc result)
    get_filename_component(bin ${nvcc} DIRECTORY)
    execute_process(COMMAND ${bin}/__nvcc_device_query OUTPUT_VARIABLE text ERROR_QUIET
                    RESULT_VARIABLE rc)
    set(wanted "")
    if(rc EQUAL 0)
        string(REGEX MATCHALL "[0-9]+" codes "${text}")
        list(REMOVE_DUPLICATES codes)
        list(TRANSFORM codes APPEND -real OUTPUT_VARIABLE wanted)
    endif()
    set(${result} "${wanted}" PARENT_SCOPE)
endfunction()

set(GX_HAVE_CUDA 0)
set(GX_NO_CUDA_REASON "switched off (GEXEC_CUDA=OFF)")
if(NOT GEXEC_CUDA MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "GEXEC_CUDA is '${GEXEC_CUDA}'; expected AUTO, ON or OFF")
endif()

if(NOT GEXEC_CUDA STREQUAL "OFF")
    set(GX_NO_CUDA_REASON "no toolkit found")
    gx_nvcc_candidates(gx_candidates)
    foreach(gx_candidate ${gx_candidates})
        gx_nvcc_version(${gx_candidate} gx_version)
        if(gx_version VERSION_GREATER_EQUAL GX_CUDA_OLDEST)
            set(GX_HAVE_CUDA 1)
            set(CMAKE_CUDA_COMPILER ${gx_candidate} CACHE FILEPATH "CUDA compiler" FORCE)
            break()
        endif()
        if(gx_version)
            set(GX_NO_CUDA_REASON
                "${gx_candidate} is of ${gx_version}, older than ${GX_CUDA_OLDEST}")
        else()
            set(GX_NO_CUDA_REASON "${gx_candidate} does not run")
        endif()
    endforeach()
    if(GEXEC_CUDA STREQUAL "ON" AND NOT GX_HAVE_CUDA)
        message(FATAL_ERROR "GEXEC_CUDA=ON, but ${GX_NO_CUDA_REASON}. Name one with "
            "-DCMAKE_CUDA_COMPILER=/path/to/nvcc, get one with tools/setup, or build for "
            "the CPU with -DGEXEC_CUDA=OFF.")
    endif()
endif()

if(GX_HAVE_CUDA)
    set(gx_wanted "${CMAKE_CUDA_ARCHITECTURES}")
    if(gx_wanted STREQUAL "native")
        gx_native_architectures(${CMAKE_CUDA_COMPILER} gx_wanted)
    endif()
    if(gx_wanted STREQUAL "" OR gx_wanted STREQUAL "all")
        gx_all_architectures(${CMAKE_CUDA_COMPILER} gx_wanted)
    endif()
    set(CMAKE_CUDA_ARCHITECTURES "${gx_wanted}" CACHE STRING "CUDA architectures" FORCE)
endif()
