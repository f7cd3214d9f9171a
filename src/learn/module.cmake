# Data sets (src/learn/*.cpp) need no torch; learners are in torch/ or, for a build without torch, in no_torch/.
target_link_libraries(motley_learn PRIVATE ZLIB::ZLIB)

if(NOT MOTLEY_TORCH)
  target_sources(motley_learn PRIVATE ${CMAKE_SOURCE_DIR}/src/learn/no_torch/learner.cpp)
  list(APPEND tests ${CMAKE_SOURCE_DIR}/src/learn/no_torch/learner_test.cpp)
  return()
endif()

file(GLOB torch_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/learn/torch/*.cpp)
set(torch_tests ${torch_sources})
list(FILTER torch_tests INCLUDE REGEX "_test\\.cpp$")
list(FILTER torch_sources EXCLUDE REGEX "_test\\.cpp$")
set(tests_with_torch ${torch_tests})  # tests that use tensors themselves
list(FILTER tests_with_torch INCLUDE REGEX "/(device_codec|registry|parameter_upload|gradient_download|forward_pass|received_values|delta_download)_test\\.cpp$")
list(REMOVE_ITEM torch_tests ${tests_with_torch})
list(APPEND tests ${torch_tests})

# Their own library, so that torch's flags, include paths and precompiled header (6 s a file) stay away from everything else, and that
# libmotley can leave them out. libstdc++ goes before torch: PyTorch's own builds export an older std::filesystem of another layout, and
# a program that binds to that one crashes at its first path (seen with torch 2.11+cu130).
add_library(motley_learn_torch STATIC ${torch_sources})
target_include_directories(motley_learn_torch PRIVATE ${CMAKE_SOURCE_DIR}/src)
target_link_libraries(motley_learn_torch PRIVATE motley_learn stdc++ motley_torch motley_base motley_codec motley_compiler)
target_precompile_headers(motley_learn_torch PRIVATE <ATen/ATen.h>)
motley_for_shared_library(motley_learn_torch)

if(MOTLEY_TESTS)
  add_library(test_learn_torch OBJECT ${tests_with_torch})
  target_include_directories(test_learn_torch PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(test_learn_torch PRIVATE motley_torch motley_base motley_codec motley_compiler GTest::gtest)
  target_precompile_headers(test_learn_torch REUSE_FROM motley_learn_torch)
  motley_for_shared_library(test_learn_torch)  # as the precompiled header was compiled
  list(APPEND tests $<TARGET_OBJECTS:test_learn_torch>)
endif()
# A library with MOTLEY_WITHOUT_TORCH brings no_torch/ instead. `stdc++` and `motley_torch` stand here too, for their order and for
# motley_loads_torch().
set(with_torch $<NOT:$<BOOL:$<TARGET_PROPERTY:MOTLEY_WITHOUT_TORCH>>>)
target_link_libraries(motley_learn INTERFACE $<${with_torch}:$<LINK_ONLY:motley_learn_torch>> stdc++ $<${with_torch}:$<LINK_ONLY:motley_torch>>
                                             ${CMAKE_DL_LIBS})
