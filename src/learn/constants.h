// Every tuned constant of learn: unit, source, effect. Bounds on input (largest width, largest file) stand where they are checked.
#pragma once
#include <cstddef>
#include <cstdint>

namespace motley::learn {

/// Samples of one forward of an evaluation on the CPU. Measured: beyond 64 the activations of convolutions leave the cache and a sample
/// takes twice as long; a linear layer gains 10 % from more.
inline constexpr std::int64_t evaluation_samples = 64;
/// Characters of one forward of an evaluation of text on the CPU, in at most evaluation_samples sequences. Attention's memory grows with
/// the square of the context, so long sequences are evaluated by fewer. Double: twice the memory.
inline constexpr std::int64_t evaluation_characters = 4096;

/// Samples, and sequences of text, of one forward of an evaluation on a GPU: enough to occupy it. Double: twice the memory for activations.
inline constexpr std::size_t device_evaluation_samples = 1000;
inline constexpr std::size_t device_evaluation_sequences = 64;

/// Blocks of the next step that a GPU is asked for before the host has finished this step: some milliseconds of the GPU's work, less than
/// one of the host's. 0: the GPU waits between steps. More delays the delivery of this step's last gradients.
inline constexpr std::size_t blocks_begun_early = 2;

/// Bytes of one part of the data set (training or evaluation) that may stay on a GPU, so that the GPU gathers the batches; a larger part is
/// gathered on the host, batch by batch. More leaves less memory for activations.
inline constexpr std::uint64_t resident_samples_bytes = std::uint64_t{4} << 30;
/// Samples that are copied at a time while a part of the data set moves to the GPU: bounds the temporary memory of the host.
inline constexpr std::uint64_t resident_copy_samples = 4096;

/// Bytes. A tensor at an address that is no multiple of this is computed with in an aligned copy: convolutions read 16 bytes at once.
inline constexpr std::uintptr_t kernel_alignment = 16;

/// Samples of the evaluation split of the data set "noise" at most. Noise cannot be learned, so its accuracy need not be exact.
inline constexpr std::uint64_t noise_evaluation_samples = 256;

}  // namespace motley::learn
