# Vectorised in optimised builds, never contracted to fused multiply-adds, so that unlike machines agree bit for bit.
target_compile_options(motley_codec PRIVATE -ffp-contract=off $<$<NOT:$<CONFIG:Debug>>:-O3>)

# Loops for one instruction set each: only these files may use its instructions, and they run only where targets() finds it.
# g++ 12 takes its own header's undefined vectors (_mm256_undefined_si256) for an uninitialised variable of ours.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(x86 ${CMAKE_SOURCE_DIR}/src/codec/x86)
  target_sources(motley_codec PRIVATE ${x86}/targets.cpp ${x86}/avx2.cpp ${x86}/avx512.cpp)
  set_source_files_properties(${x86}/avx2.cpp PROPERTIES COMPILE_OPTIONS -mavx2)
  set_source_files_properties(${x86}/avx512.cpp PROPERTIES COMPILE_OPTIONS "-mavx512f;$<$<CXX_COMPILER_ID:GNU>:-Wno-uninitialized>")
else()
  target_sources(motley_codec PRIVATE ${CMAKE_SOURCE_DIR}/src/codec/no_x86/targets.cpp)
endif()
