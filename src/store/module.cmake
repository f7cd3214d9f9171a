# The numbers: vectorised where optimised, never contracted to fused multiply-adds, so that unlike machines agree bit for bit.
# -fno-math-errno lets the compiler use the (exactly rounded) square root instruction.
target_compile_options(motley_store PRIVATE -ffp-contract=off -fno-math-errno $<$<NOT:$<CONFIG:Debug>>:-O3>)
# The loops over values come compiled for several processors; which of them runs is chosen where it runs (base/processor.h).
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/store/kernels_avx2.cpp PROPERTIES COMPILE_OPTIONS "-mavx2")
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/store/kernels_avx512.cpp PROPERTIES COMPILE_OPTIONS
    "-mavx512f;-mavx512dq;-mavx512bw;-mavx512vl;-mprefer-vector-width=512")
endif()
