# Asio's fences, which g++'s thread sanitizer does not follow and warns of in every file that includes it.
if("thread" IN_LIST MOTLEY_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(motley_transport PUBLIC -Wno-tsan)
endif()
