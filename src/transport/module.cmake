# Asio uses atomic fences, which g++'s thread sanitizer does not support; g++ warns about them in every file that includes Asio.
if("thread" IN_LIST MOTLEY_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(motley_transport PUBLIC -Wno-tsan)
endif()
# Files whose unnamed namespaces share names with others of the module: two binary formats, two handshakes.
set_source_files_properties(
  ${CMAKE_SOURCE_DIR}/src/transport/shared_frame.cpp ${CMAKE_SOURCE_DIR}/src/transport/bulk_negotiation.cpp
  ${CMAKE_SOURCE_DIR}/src/transport/bulk_frame.cpp PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
