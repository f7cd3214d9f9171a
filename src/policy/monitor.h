// Measurements of each worker: an affine fit t(b) = a + beta*b of its compute time, the jitter of its steps, its transfer times. Decisions
// use these and never a configured speed.
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

/// Least squares over (samples, seconds), in which each older observation weighs 0.9 of the next (recursive least squares with forgetting,
/// in batch form). While the batch sizes seen are too similar to tell a from beta, a keeps its last value (0 at first).
/// A device that slows down does so as a whole: when a batch like the last one takes over 1.6 times the predicted time, or less than 1/1.6,
/// which jitter does not explain, all sums are scaled at once and the proportion of a and beta stays (as one more point of the fit such a
/// step would look like overhead). After a change of batch size the fit itself may be wrong, so then the step is an ordinary observation.
/// The cost that a device has measured itself counts as ten steps for that proportion: two similar sizes with one outlier do not override
/// it.
class SpeedFit {
 public:
  /// `prior`: the cost that the device has measured itself; 0 per sample: none.
  explicit SpeedFit(const cluster::Affine& prior = {}) : prior_(prior) {}
  void observe(std::uint32_t samples, Duration compute);
  /// The same for a time-limited step. Such steps all take the same time and do not tell a from beta: all sums are scaled.
  void observe_limited(std::uint32_t samples, Duration compute);
  /// A step of so many samples was cancelled, unfinished, after this time.
  void observe_unfinished(std::uint32_t samples, Duration so_far);
  [[nodiscard]] std::uint64_t observations() const { return observations_; }
  /// Relative standard deviation of step times from the fit, moving.
  [[nodiscard]] double jitter() const { return jitter_; }
  /// There must be an observation. a >= 0, beta > 0.
  [[nodiscard]] cluster::Affine fit() const { return fit_; }
  /// Samples per second at the last batch size, which is known well even when a and beta are not. There must be an observation.
  [[nodiscard]] double samples_per_second() const { return last_samples_ / fit_.at(last_samples_); }

 private:
  [[nodiscard]] static bool out_of_bounds(double ratio);
  [[nodiscard]] bool jumped(double samples, double ratio) const;
  void strayed(double ratio);
  void rescale(double ratio);
  void refit(double b, double t);

  double weight_ = 0, samples_ = 0, squares_ = 0, seconds_ = 0, products_ = 0;  // weighted sums of 1, b, b*b, t, b*t
  cluster::Affine prior_;
  cluster::Affine fit_;
  double last_samples_ = 0;
  double jitter_ = 0;
  std::uint64_t observations_ = 0;
};

/// Bytes of a whole contribution, or of all parameters, by bits per value.
struct Traffic {
  double bytes_32 = 4;
  double bytes_16 = 2;
  double bytes_8 = 1;
  double bytes_4 = 0.5;
  double bytes_2 = 0.25;
  double coding_s = 0;  // seconds for encoding and decoding them in fewer than 32 bits
  [[nodiscard]] double bytes(std::uint8_t bits) const;
  [[nodiscard]] double coding(std::uint8_t bits) const { return bits < 32 ? coding_s : 0; }
};

class Monitor {
 public:
  explicit Monitor(const Traffic& traffic = {}) : traffic_(traffic) {}
  void joined(WorkerId worker, const cluster::DeviceProfile& device = {});
  void observe(const Contribution& contribution);
  /// The worker was ordered a step of so many samples.
  void ordered(WorkerId worker, std::uint32_t samples);
  /// Its last step was cancelled after this time.
  void given_up(WorkerId worker, Duration so_far);
  [[nodiscard]] const SpeedFit& speed(WorkerId worker) const { return of(worker).speed; }

  /// Extra seconds of a step of so many samples if the device has not used that size before; 0: it has, or new sizes cost nothing.
  [[nodiscard]] double new_batch_size_s(WorkerId worker, std::uint32_t samples) const;

  /// A transfer in each direction has been measured.
  [[nodiscard]] bool transferred(WorkerId worker) const { return of(worker).push > 0 && of(worker).pull > 0; }
  /// Predicted transfer time of a contribution, or of the parameters, with so many bits per value, from the last transfers. 0: not known.
  [[nodiscard]] double push_s(WorkerId worker, std::uint8_t bits) const { return transfer_s(of(worker), of(worker).push, bits); }
  [[nodiscard]] double pull_s(WorkerId worker, std::uint8_t bits) const { return transfer_s(of(worker), of(worker).pull, bits); }

 private:
  struct Measured {
    SpeedFit speed;
    std::uint32_t bytes_per_value = 4;  // without coding
    double push = 0;                    // seconds per byte, moving
    double pull = 0;
    std::uint32_t ordered = 0;  // samples
    // For a device whose first step of each size takes longer:
    std::set<std::uint32_t> sizes;      // used so far; empty: new sizes cost nothing
    double new_size_cost_s = 0;         // moving
    std::uint32_t unmeasured_size = 0;  // of a first step that could not be compared with the fit yet
    double unmeasured_s = 0;            // time of that step
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
  std::vector<Measured> measured_;  // by id; ids are never reused
};

}  // namespace motley::policy
