# embed_bytes(FILE VARIABLE): the bytes of a file as the inside of a C array: "0x..,0x..,", 16 a line.
function(embed_bytes file variable)
  file(READ ${file} hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(REGEX REPLACE "(0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,0x..,)" "\\1\n"
         bytes "${bytes}")
  set(${variable} "${bytes}" PARENT_SCOPE)
endfunction()
