#include "cluster/device_profile.h"

#include <algorithm>

#include "cluster/constants.h"

namespace motley::cluster {
namespace {

double within(double measured, double least, double most) { return measured >= least && measured <= most ? measured : 0; }

}  // namespace

bool DeviceProfile::free_transfers() const { return transfer_s_per_byte >= 0 && transfer_s_per_byte < free_transfer_s_per_byte; }

double DeviceProfile::idle_share() const { return batch_multiple > 1 ? idle_share_of_gpu : 0; }

DeviceProfile plausible(DeviceProfile reported) {
  reported.batch_multiple = std::max(reported.batch_multiple, 1U);
  reported.cost = {within(reported.cost.fixed, least_fixed_s, most_fixed_s),
                   within(reported.cost.per_sample, least_per_sample_s, most_per_sample_s)};
  return reported;
}

}  // namespace motley::cluster
