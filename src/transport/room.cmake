# Asio's fences, which g++'s thread sanitizer does not follow and warns of in every file that includes it.
if("thread" IN_LIST MOTLEY_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  target_compile_options(motley_transport PUBLIC -Wno-tsan)
endif()

# Shared memory comes from UCX (ucx/) or, where there is none, not at all (no_ucx/).
if(MOTLEY_UCX_FOUND)
  target_sources(motley_transport PRIVATE ${CMAKE_SOURCE_DIR}/src/transport/ucx/segment.cpp)
  target_link_libraries(motley_transport PRIVATE motley_ucx)
else()
  target_sources(motley_transport PRIVATE ${CMAKE_SOURCE_DIR}/src/transport/no_ucx/segment.cpp)
endif()
