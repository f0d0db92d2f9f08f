# Puts the report's page together, and writes what stands before its data and behind as
# two C arrays.
# usage: cmake -DFOLDER=tools/report -DOUT=FILE.c -DPARTS=a,b -P embed_page.cmake
file(READ ${FOLDER}/report.html page)
file(READ ${FOLDER}/report.css style)
set(script "(function () {\n\"use strict\";\n\n")
string(REPLACE "," ";" parts "${PARTS}")
foreach(part IN LISTS parts)
    file(READ ${FOLDER}/${part}.js text)
    string(APPEND script "${text}\n")
endforeach()
string(APPEND script "})();\n")
string(REPLACE "{{style}}" "${style}" page "${page}")
string(REPLACE "{{script}}" "${script}" page "${page}")

string(FIND "${page}" "{{data}}" at)
if(at LESS 0)
    message(FATAL_ERROR "${FOLDER}/report.html has no place for the data")
endif()
string(SUBSTRING "${page}" 0 ${at} head)
math(EXPR behind "${at} + 8")
string(SUBSTRING "${page}" ${behind} -1 tail)

set(code "/* Written by embed_page.cmake. */\n#include \"report_page.h\"\n")
foreach(part head tail)
    file(WRITE ${OUT}.${part} "${${part}}")
    file(READ ${OUT}.${part} bytes HEX)
    file(REMOVE ${OUT}.${part})
    string(REGEX REPLACE "(................................)" "\\1\n" bytes "${bytes}")
    string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${bytes}")
    string(APPEND code "\nconst unsigned char gx_report_${part}[] = {\n${bytes}\n};\n"
        "const size_t gx_report_${part}_size = sizeof gx_report_${part};\n")
endforeach()
file(WRITE ${OUT} "${code}")
