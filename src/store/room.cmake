# The numbers: vectorised where optimised, never contracted to fused multiply-adds, so that unlike machines agree bit for bit.
# -fno-math-errno lets the compiler use the (exactly rounded) square root instruction.
target_compile_options(motley_store PRIVATE -ffp-contract=off -fno-math-errno $<$<NOT:$<CONFIG:Debug>>:-O3>)
