#include "learn/torch/delta_download.h"

#include <algorithm>

#include "learn/torch/pinned.h"

namespace motley::learn {

DeltaDownload::DeltaDownload(const DeviceModel& model)
    : model_(model),
      staging_(pinned(model.shape().values(), at::kFloat, model.device())),
      scalars_(pinned(6, at::kDouble, model.device())),
      encoder_(model.lanes(), model.shape().values(), model.device()) {}

DeltaDownload::Scalars DeltaDownload::download(const at::Tensor& delta, const at::Tensor& sums, const at::Tensor& update_norm,
                                               const GradientEncoding* encoding, std::span<float> out) {
  const bool direct = is_pinned(std::as_bytes(out));
  const at::Tensor host = direct ? as_tensor(out) : staging_;
  if (encoding != nullptr) {
    encoder_.begin(*encoding);
    encoder_.encode(0, model_.shape().values(), delta, host.view(at::kByte));
  } else {
    host.copy_(delta, /*non_blocking=*/true);
  }
  scalars_.copy_(at::cat({sums, model_.squared_norm(delta).unsqueeze(0), update_norm, encoder_.squared_norms()}), /*non_blocking=*/true);
  model_.lanes().settle();
  if (!direct) std::copy_n(staging_.data_ptr<float>(), out.size(), out.begin());
  const double* const scalars = scalars_.data_ptr<double>();
  return {.sums = {scalars[0], scalars[1]},
          .squared_norm = scalars[2],
          .update_norm = scalars[3],
          .residual = encoding != nullptr ? residual_ratio(scalars + 4) : 0};
}

}  // namespace motley::learn
