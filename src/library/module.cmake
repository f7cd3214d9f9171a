# The public headers, which are C++20 and nothing else; version.h is made from the project's version.
configure_file(${CMAKE_SOURCE_DIR}/cmake/version.h.in ${CMAKE_BINARY_DIR}/include/motley/version.h @ONLY)
target_include_directories(motley_library PUBLIC ${CMAKE_SOURCE_DIR}/include ${CMAKE_BINARY_DIR}/include)
