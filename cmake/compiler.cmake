# Warnings are errors in our own code; headers of libraries are SYSTEM. No -march: one binary runs on every machine.
add_library(motley_compiler INTERFACE)
target_compile_options(motley_compiler INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wimplicit-fallthrough
  -ffp-contract=off                            # no fused multiply-add: different machines agree bit for bit
  -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)    # messages say src/base/rng.cpp, whatever the build folder
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these inside std::variant and std::string at -O2 without a cause.
  target_compile_options(motley_compiler INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overread -Wno-stringop-overflow -Wno-array-bounds)
endif()
foreach(sanitizer IN LISTS MOTLEY_SANITIZE)
  target_compile_options(motley_compiler INTERFACE -fsanitize=${sanitizer} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(motley_compiler INTERFACE -fsanitize=${sanitizer})
endforeach()

find_program(MOTLEY_CCACHE ccache)
if(MOTLEY_CCACHE)
  # ccache caches precompiled headers only with these two settings (its manual, "Precompiled headers").
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${MOTLEY_CCACHE})
endif()
