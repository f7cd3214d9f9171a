# motley_module(name [UNITY] USES modules and libraries...)
# src/name/*.cpp becomes the library motley_name, src/name/*_test.cpp the test program test_name.
# An optional src/name/module.cmake adds to it (learn chooses between torch/ and no_torch/ there).
include(GoogleTest)

function(motley_module name)
  cmake_parse_arguments(module "UNITY" "" "USES" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cpp)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cpp$")

  set(links)
  foreach(used IN LISTS module_USES)
    if(used MATCHES "::")
      list(APPEND links ${used})
    else()
      list(APPEND links motley_${used})
    endif()
  endforeach()

  if(sources)
    add_library(motley_${name} STATIC ${sources})
    target_include_directories(motley_${name} PUBLIC ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(motley_${name} PUBLIC ${links} PRIVATE motley_compiler)
    motley_for_shared_library(motley_${name})
  else()
    add_library(motley_${name} INTERFACE)
    target_include_directories(motley_${name} INTERFACE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(motley_${name} INTERFACE ${links})
  endif()
  if(EXISTS ${CMAKE_SOURCE_DIR}/src/${name}/module.cmake)
    include(${CMAKE_SOURCE_DIR}/src/${name}/module.cmake)
  endif()

  if(MOTLEY_TESTS AND tests)
    motley_test(test_${name} SOURCES ${tests} USES motley_${name})
    # -O1 saves a quarter of the compile time of tests; the code under test is in the library, at full optimisation.
    target_compile_options(test_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  if(module_UNITY AND MOTLEY_UNITY)
    set_target_properties(motley_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 5)
    # g++ treats an included source as a header and warns of every coroutine frame that holds a type of its unnamed namespace.
    target_compile_options(motley_${name} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
  endif()
endfunction()

# The objects of `target` may become a part of libmotley, which exports nothing but include/motley/.
function(motley_for_shared_library target)
  set_target_properties(${target} PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    CXX_VISIBILITY_PRESET hidden
    VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# Sets `answer` to whether a program that links `targets` loads libtorch.
function(motley_loads_torch answer)
  set(found FALSE)
  foreach(target IN LISTS ARGN)
    if(target MATCHES "motley_torch")  # also inside a generator expression
      set(found TRUE)
    elseif(target MATCHES "^motley_" AND TARGET ${target})
      get_target_property(links ${target} INTERFACE_LINK_LIBRARIES)
      if(links)
        motley_loads_torch(found ${links})
      endif()
    endif()
    if(found)
      break()
    endif()
  endforeach()
  set(${answer} ${found} PARENT_SCOPE)
endfunction()

# motley_test(program SOURCES ... USES targets...)
# Each case is a ctest entry of its own, unless the program loads libtorch, which takes 0.4 s per start (several with CUDA):
# such a program is one entry, on one core, since ctest runs entries in parallel.
function(motley_test name)
  cmake_parse_arguments(test "" "" "SOURCES;USES" ${ARGN})
  add_executable(${name} ${test_SOURCES})
  target_link_libraries(${name} PRIVATE ${test_USES} motley_compiler GTest::gtest_main)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_compile_definitions(${name} PRIVATE MOTLEY_SOURCE_DIR="${CMAKE_SOURCE_DIR}" MOTLEY_BINARY="${CMAKE_BINARY_DIR}/motley")
  motley_loads_torch(torch ${test_USES})
  if(torch)
    add_test(NAME ${name} COMMAND ${name} --gtest_brief=1 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(${name} PROPERTIES ENVIRONMENT "OMP_NUM_THREADS=1;OPENBLAS_NUM_THREADS=1")
  else()
    gtest_discover_tests(${name} NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  endif()
endfunction()
