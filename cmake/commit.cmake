# Writes OUTPUT, a C header with the commit of the sources in ROOT, if it is not what stands there.
cmake_policy(VERSION 3.20)
set(commit "")
find_program(git git)
if(git AND EXISTS ${ROOT}/.git)
  execute_process(COMMAND ${git} -C ${ROOT} describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT commit MATCHES "^[0-9a-f]+(-dirty)?$")
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#define CLTRAIN_COMMIT \"@commit@\"\n" @ONLY)
