// Memory that one stage of a simulated pipeline needs: the activations of its micro-batches, and every version of its parameters that their
// backward passes still use (weight stashing).
#pragma once
#include <compare>
#include <cstdint>
#include <map>

namespace motley::sim {

class StageMemory {
 public:
  /// `activation_bytes`: of one micro-batch; `parameter_bytes`: of one version.
  StageMemory(double activation_bytes, double parameter_bytes) : activation_bytes_(activation_bytes), parameter_bytes_(parameter_bytes) {}

  /// A forward begins on the parameters after `committed` updates, or on those predicted from there.
  void begin(std::uint64_t micro, std::uint64_t committed, bool predicted) { used_[micro] = {committed, predicted}; }
  /// The micro-batch's last part is done.
  void release(std::uint64_t micro) { used_.erase(micro); }
  /// Updates in the parameters that the micro-batch's forward used. It must not be released.
  [[nodiscard]] std::uint64_t version_of(std::uint64_t micro) const { return used_.at(micro).committed; }

  /// With so many micro-batches kept.
  [[nodiscard]] double activation_bytes(std::uint64_t micros) const { return static_cast<double>(micros) * activation_bytes_; }
  /// Of versions in use other than the newest, which is that after `committed` updates.
  [[nodiscard]] double stashed_bytes(std::uint64_t committed) const;

 private:
  struct Used {
    std::uint64_t committed = 0;
    bool predicted = false;
    auto operator<=>(const Used&) const = default;
  };
  double activation_bytes_;
  double parameter_bytes_;
  std::map<std::uint64_t, Used> used_;  // by micro-batch
};

}  // namespace motley::sim
