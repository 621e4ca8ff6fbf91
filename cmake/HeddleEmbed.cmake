# SPDX-License-Identifier: BSD-3-Clause
# Files become a C source: cmake -DOUT=x.c -DDIR=folder -DFILES=a,b -P this
# It defines view_files[] of tools/heddle/trace/view/view.h.
string(REPLACE "," ";" FILES "${FILES}")
set(text "/* Made by cmake/HeddleEmbed.cmake from ${DIR}. */\n")
string(APPEND text "#include \"trace/view/view.h\"\n")
set(table "")
set(i 0)
foreach(f IN LISTS FILES)
  file(READ ${DIR}/${f} hex HEX)
  file(SIZE ${DIR}/${f} size)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  # A line per 16 bytes: compilers and people dislike endless ones.
  string(REPEAT "0x[0-9a-f][0-9a-f]," 16 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  string(APPEND text "static const unsigned char file_${i}[] = {\n${bytes}0};\n")
  string(APPEND table "    {\"${f}\", file_${i}, ${size}},\n")
  math(EXPR i "${i} + 1")
endforeach()
string(APPEND text "const struct view_file view_files[] = {\n${table}")
string(APPEND text "    {0, 0, 0}};\n")
file(WRITE ${OUT} "${text}")
