#include "cluster/known_batch_sizes.h"

#include <algorithm>
#include <iterator>

#include "cluster/constants.h"

namespace motley::cluster {
void KnownBatchSizes::observe(std::uint64_t samples, Duration time) {
  if (samples == 0) return;
  const double each = seconds(time) / static_cast<double>(samples);
  sample_s_ = sample_s_ > 0 ? (1 - newest_step_weight) * sample_s_ + newest_step_weight * each : each;
}

std::uint64_t KnownBatchSizes::largest_fitting(std::uint64_t most, Duration limit, std::uint32_t batch_multiple, std::uint64_t done) const {
  if (limit <= Duration{0} || sample_s_ <= 0) return most;
  const double in_all = seconds(limit) / sample_s_ - static_cast<double>(done);
  const auto room = static_cast<std::uint64_t>(std::clamp(in_all, 0.0, static_cast<double>(most)));
  if (room >= most) return most;
  if (const auto above = sizes_.upper_bound(room); above != sizes_.begin())
    if (const std::uint64_t contains = *std::prev(above);
        static_cast<double>(contains) >= least_fill_of_known_size * static_cast<double>(room))
      return contains;
  return std::clamp<std::uint64_t>(room / batch_multiple * batch_multiple, std::min<std::uint64_t>(batch_multiple, most), most);
}

}  // namespace motley::cluster
