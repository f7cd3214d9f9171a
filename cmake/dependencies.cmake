# Libraries come from the system's packages. Header-only ones may also lie in a folder of CMAKE_PREFIX_PATH.
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED)
find_package(ZLIB REQUIRED)

# motley_headers(target package version header definitions...): a header-only library by its CMake package, or else by its headers alone.
# The definitions are those that the headers need without their package.
function(motley_headers target package version header)
  find_package(${package} ${version} CONFIG QUIET)
  if(NOT TARGET ${target})
    find_path(${package}_INCLUDE ${header})
    if(${package}_CONSIDERED_VERSIONS OR NOT ${package}_INCLUDE)
      message(FATAL_ERROR "Motley needs ${package} >= ${version} (${header}) and found '${${package}_CONSIDERED_VERSIONS}'; "
                          "on Debian 12 scripts/setup.sh installs it, elsewhere give its folder with -DCMAKE_PREFIX_PATH=FOLDER")
    endif()
    add_library(${target} INTERFACE IMPORTED GLOBAL)
    target_include_directories(${target} SYSTEM INTERFACE ${${package}_INCLUDE})
    target_compile_definitions(${target} INTERFACE ${ARGN})
  endif()
endfunction()
motley_headers(Boost::headers Boost 1.81 boost/describe.hpp)
motley_headers(CLI11::CLI11 CLI11 2.1 CLI/CLI.hpp)
motley_headers(tomlplusplus::tomlplusplus tomlplusplus 3.3 toml++/toml.h)
motley_headers(fmt::fmt fmt 9 fmt/format.h FMT_HEADER_ONLY)

# Torch's CMake files report every library that they find and warn of optional ones, so their output is shown only when they fail.
# Without a packaged libtorch, the one of Python's torch is used; its folder is found without importing it.
if(MOTLEY_TORCH)
  set(log_level "${CMAKE_MESSAGE_LOG_LEVEL}")
  set(CMAKE_MESSAGE_LOG_LEVEL ERROR)
  find_package(Torch QUIET)
  if(NOT Torch_FOUND)
    execute_process(
      COMMAND python3 -c "import importlib.util as u; s = u.find_spec('torch'); print(s.submodule_search_locations[0] if s else '')"
      OUTPUT_VARIABLE python_torch OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    if(python_torch)
      find_package(Torch QUIET PATHS ${python_torch}/share/cmake)
    endif()
  endif()
  set(CMAKE_MESSAGE_LOG_LEVEL "${log_level}")
  if(NOT Torch_FOUND)
    message(FATAL_ERROR "Motley needs libtorch >= 1.13 for real gradients and found none; on Debian 12 scripts/setup.sh installs it, "
                        "elsewhere give -DCMAKE_PREFIX_PATH=FOLDER, or build everything else with -DMOTLEY_TORCH=OFF")
  endif()
  message(STATUS "Found Torch: ${TORCH_LIBRARY}")
  add_library(motley_torch INTERFACE)
  target_link_libraries(motley_torch INTERFACE ${TORCH_LIBRARIES})
  target_include_directories(motley_torch SYSTEM INTERFACE ${TORCH_INCLUDE_DIRS})
  separate_arguments(torch_flags UNIX_COMMAND "${TORCH_CXX_FLAGS}")
  target_compile_options(motley_torch INTERFACE ${torch_flags})
  # Python's torch contains newer fmt headers, which are found before the system's and must not link the system's library.
  target_compile_definitions(motley_torch INTERFACE FMT_HEADER_ONLY)
endif()

if(MOTLEY_TESTS)
  find_package(GTest REQUIRED)
endif()
