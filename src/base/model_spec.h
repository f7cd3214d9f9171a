// ModelSpec: the model of a job.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace motley {

struct ModelSpec {
  std::string kind = "mlp";                    // mlp | cnn | resnet18 | resnet20 | vgg11 | transformer, or a registered name
  std::vector<std::uint64_t> hidden{128, 64};  // mlp: widths between input and classes
  /// 0: the default, 64 for resnet18 and 16 for others. cnn, resnets, vgg11: channels of the first block; transformer: embedding width, a
  /// multiple of heads.
  std::uint64_t width = 0;
  /// 0: the default. transformer: blocks (2); resnet18, resnet20: units per layer (2; 3, and 9 make resnet56); vgg11: repetitions of each
  /// convolution (1).
  std::uint64_t depth = 0;
  std::uint64_t heads = 4;             // transformer
  std::string loss = "cross-entropy";  // or a registered name
  /// Format of a GPU's matrix products: fp32 | tf32 | bf16 (weights and activations; norms, sums and updates stay in fp32). A CPU always
  /// computes in fp32.
  std::string precision = "fp32";
};

}  // namespace motley
