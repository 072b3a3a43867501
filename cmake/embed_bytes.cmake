# Writes OUTPUT, a C file that holds the bytes of INPUT as NAME[] and their number as NAME_bytes.
include(${CMAKE_CURRENT_LIST_DIR}/embed.cmake)
embed_bytes(${INPUT} bytes)
file(WRITE ${OUTPUT} "#include <stddef.h>
extern const unsigned char ${NAME}[];
extern const size_t ${NAME}_bytes;
const unsigned char ${NAME}[] = {
${bytes}};
const size_t ${NAME}_bytes = sizeof ${NAME};
")
