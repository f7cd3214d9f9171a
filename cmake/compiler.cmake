# Warnings are errors on our own code; libraries come in as SYSTEM. No -march: unlike machines run one binary.
add_library(motley_compiler INTERFACE)
target_compile_options(motley_compiler INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Woverloaded-virtual -Wcast-align -Wimplicit-fallthrough
  -ffp-contract=off                            # no fused multiply-add behind our back: unlike machines agree bit for bit
  -fmacro-prefix-map=${CMAKE_SOURCE_DIR}/=)    # messages say src/base/rng.cpp, wherever it was built
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # g++ 12 reports these inside std::variant and std::string at -O2 where nothing is wrong.
  target_compile_options(motley_compiler INTERFACE -Wno-maybe-uninitialized -Wno-restrict -Wno-stringop-overread -Wno-stringop-overflow -Wno-array-bounds)
endif()
foreach(sanitizer IN LISTS MOTLEY_SANITIZE)
  target_compile_options(motley_compiler INTERFACE -fsanitize=${sanitizer} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(motley_compiler INTERFACE -fsanitize=${sanitizer})
endforeach()

find_program(MOTLEY_CCACHE ccache)
if(MOTLEY_CCACHE)
  # Precompiled headers are cached only with these two leniences (ccache's manual, "Precompiled headers").
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros ${MOTLEY_CCACHE})
endif()
