// What was measured of each worker: an affine fit t(b) = a + beta*b of its compute time, how uneven that is, and how fast its values
// travel. Decisions read this, never a configured speed.
#pragma once
#include <array>
#include <cstdint>
#include <set>
#include <vector>

#include "base/bits.h"
#include "base/ids.h"
#include "base/time.h"
#include "cluster/device_profile.h"
#include "policy/decisions.h"

namespace motley::policy {

/// Least squares over (samples, seconds) in which each older observation weighs 0.9 of the next (the batch form of recursive least squares
/// with forgetting). While the batches seen lie too close together to tell a from beta, a keeps its last known value (0 at first). A device
/// that slows down does so as a whole: when a batch like the last one takes over 1.6 times as long as predicted, or as much less (no jitter
/// does that), everything seen so far is scaled at once, so that what was learned of the proportion of a and beta stays valid. As one more
/// point of the fit it would be taken for overhead. After a change of batch the fit itself may be what is wrong, so then it learns instead.
/// A device that has measured itself (a GPU, which meets few sizes) is believed the proportion of a and beta as far as ten steps would tell
/// it, half of them of twice the size of the others: two sizes that lie close together, with a surprise at one, must not say otherwise.
class SpeedFit {
 public:
  /// `prior`: what the device says of itself; nothing a sample: nothing.
  explicit SpeedFit(const cluster::Affine& prior = {}) : prior_(prior) {}
  void observe(std::uint32_t samples, Duration compute);
  /// The same for a step whose time was given and whose samples are what was done by then. Such steps take all the same time, so they say
  /// nothing of the proportion of a and beta: everything seen so far is scaled.
  void observe_limited(std::uint32_t samples, Duration compute);
  /// A step of so many samples was not done when it was given up after this time.
  void observe_unfinished(std::uint32_t samples, Duration so_far);
  [[nodiscard]] std::uint64_t observations() const { return observations_; }
  /// How far a step's time strays from the fit, as a part of it (standard deviation, moving).
  [[nodiscard]] double jitter() const { return jitter_; }
  /// Must have been observed. a >= 0, beta > 0.
  [[nodiscard]] cluster::Affine fit() const { return fit_; }
  /// Samples a second at the batch it did last, which is known well however badly a and beta are told apart. Must have been observed.
  [[nodiscard]] double samples_per_second() const { return last_samples_ / fit_.at(last_samples_); }

 private:
  [[nodiscard]] static bool out_of_bounds(double ratio);
  [[nodiscard]] bool jumped(double samples, double ratio) const;
  void strayed(double ratio);
  void rescale(double ratio);
  void refit(double b, double t);

  double weight_ = 0, samples_ = 0, squares_ = 0, seconds_ = 0, products_ = 0;  // forgotten sums of 1, b, b*b, t, b*t
  cluster::Affine prior_;
  cluster::Affine fit_;
  double last_samples_ = 0;
  double jitter_ = 0;
  std::uint64_t observations_ = 0;
};

/// Bytes of a whole contribution, or of all parameters, with so many bits per value.
struct Traffic {
  double bytes_32 = 4;
  double bytes_16 = 2;
  double bytes_8 = 1;
  double bytes_4 = 0.5;
  double bytes_2 = 0.25;
  double coding_s = 0;  // what it takes to encode and decode them in fewer than 32 bits
  [[nodiscard]] double bytes(std::uint8_t bits) const;
  [[nodiscard]] double coding(std::uint8_t bits) const { return bits < 32 ? coding_s : 0; }
};

class Monitor {
 public:
  explicit Monitor(const Traffic& traffic = {}) : traffic_(traffic) {}
  void joined(WorkerId worker, const cluster::DeviceProfile& device = {});
  void observe(const Contribution& contribution);
  /// This worker is to compute so many samples now.
  void ordered(WorkerId worker, std::uint32_t samples);
  /// What it was ordered last was given up after this time.
  void given_up(WorkerId worker, Duration so_far);
  [[nodiscard]] const SpeedFit& speed(WorkerId worker) const { return of(worker).speed; }

  /// What a step of so many samples takes longer when its device has never done one of that size; 0: it has, or no size was ever dear to
  /// it.
  [[nodiscard]] double new_batch_size_s(WorkerId worker, std::uint32_t samples) const;

  /// Something of this worker has travelled both ways.
  [[nodiscard]] bool transferred(WorkerId worker) const { return of(worker).push > 0 && of(worker).pull > 0; }
  /// How long a contribution, or the parameters, would travel with so many bits: from the last ones, by their bytes and what coding them
  /// takes. 0: not known.
  [[nodiscard]] double push_s(WorkerId worker, std::uint8_t bits) const { return transfer_s(of(worker), of(worker).push, bits); }
  [[nodiscard]] double pull_s(WorkerId worker, std::uint8_t bits) const { return transfer_s(of(worker), of(worker).pull, bits); }

 private:
  struct Measured {
    SpeedFit speed;
    std::uint32_t bytes_per_value = 4;  // without coding
    double push = 0;                    // seconds per byte, moving
    double pull = 0;
    std::uint32_t ordered = 0;  // samples
    // Of a device that takes longer for the first step of a size:
    std::set<std::uint32_t> sizes;      // that it has met; empty: no size is dear to it
    double first_longer_s = 0;          // moving
    std::uint32_t unmeasured_size = 0;  // of a first step, before anything was known to compare it with
    double unmeasured_s = 0;            // that it took
  };
  [[nodiscard]] double bytes(const Measured& measured, std::uint8_t bits) const {
    return traffic_.bytes(bits == fp32_bits ? static_cast<std::uint8_t>(8 * measured.bytes_per_value) : bits);
  }
  [[nodiscard]] double transfer_s(const Measured& measured, double per_byte, std::uint8_t bits) const {
    return per_byte > 0 ? per_byte * bytes(measured, bits) + traffic_.coding(bits) : 0;
  }
  static void learn_new_size_cost(Measured& measured, const StepReport& report);
  [[nodiscard]] const Measured& of(WorkerId worker) const;

  Traffic traffic_;
  std::vector<Measured> measured_;  // by id; who left stays, ids are never used again
};

}  // namespace motley::policy
