// Which model a job trains, as the user says it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace motley {

struct ModelSpec {
  std::string kind = "mlp";                    // mlp | cnn | resnet18 | resnet20 | vgg11 | transformer, or one that a program has registered
  std::vector<std::uint64_t> hidden{128, 64};  // mlp: widths between input and classes
  std::uint64_t width = 0;         // 0: as usual, 64 for resnet18 and 16 for others. cnn, resnets, vgg11: channels of the first block;
                                   // transformer: embedding width, a multiple of heads
  std::uint64_t depth = 0;         // 0: as usual. transformer: blocks (2); resnet18, resnet20: units of each of their layers (2; 3, and 9
                                   // make resnet56); vgg11: how often each of its convolutions comes (1)
  std::uint64_t heads = 4;         // transformer
  std::string loss = "cross-entropy";  // or one that a program has registered
  std::string precision = "fp32";  // what a GPU multiplies in: fp32 | tf32 | bf16 (weights and activations; norms, sums and updates stay
                                   // in floats). A CPU always computes in fp32.
};

}  // namespace motley
