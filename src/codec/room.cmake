# The numbers: vectorised where optimised, never contracted to fused multiply-adds, so that unlike machines agree bit for bit.
target_compile_options(motley_codec PRIVATE -ffp-contract=off $<$<NOT:$<CONFIG:Debug>>:-O3>)
