// Rules: the weight of each contribution to an update, and what an update consists of. Weights follow samples, never workers.
#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "policy/decisions.h"
#include "policy/saved_state.h"

namespace motley::policy {

enum class Payload {
  gradient,  // mean gradient over the samples; the servers run the optimizer
  delta      // change of the model over local steps; the servers add it
};

class Rule {
 public:
  virtual ~Rule() = default;
  [[nodiscard]] virtual Payload payload() const = 0;
  /// Writes one weight per member into `weights` (same size).
  virtual void weigh(std::span<const Contribution> members, std::span<double> weights) = 0;
  /// The members' samples as a part of the global batch.
  [[nodiscard]] virtual double share(std::span<const Contribution> members) const = 0;
  /// Writes the state that a checkpoint must keep, always the same names; restore() reads them.
  virtual void save(StateWriter& state) const = 0;
  virtual void restore(StateReader& state) = 0;
};

/// `mean`: weight b_i/B with B the fixed global batch, for updates of one or of several members: one learning rate serves every gate.
class RuleMean : public Rule {
 public:
  explicit RuleMean(std::uint32_t global_batch) : global_batch_(global_batch) {}
  [[nodiscard]] Payload payload() const override { return Payload::gradient; }
  void weigh(std::span<const Contribution> members, std::span<double> weights) override;
  [[nodiscard]] double share(std::span<const Contribution> members) const override;
  void save(StateWriter&) const override {}
  void restore(StateReader&) override {}

 private:
  double global_batch_;
};

/// `model mean`: weight = samples_i / sum of samples: the mean of the local models, weighted by their samples.
class RuleModelMean : public Rule {
 public:
  [[nodiscard]] Payload payload() const override { return Payload::delta; }
  void weigh(std::span<const Contribution> members, std::span<double> weights) override;
  [[nodiscard]] double share(std::span<const Contribution>) const override { return 1; }
  void save(StateWriter&) const override {}
  void restore(StateReader&) override {}
};

/// Clips contributions around any rule, for gates that allow staleness: one whose norm exceeds `multiple` times the moving mean is scaled
/// down to that. At a well chosen learning rate it never acts; at two or three times that rate it prevents divergence.
class RuleClipped : public Rule {
 public:
  RuleClipped(std::unique_ptr<Rule> inner, double multiple) : inner_(std::move(inner)), multiple_(multiple) {}
  [[nodiscard]] Payload payload() const override { return inner_->payload(); }
  void weigh(std::span<const Contribution> members, std::span<double> weights) override;
  [[nodiscard]] double share(std::span<const Contribution> members) const override { return inner_->share(members); }
  void save(StateWriter& state) const override;
  void restore(StateReader& state) override;

 private:
  std::unique_ptr<Rule> inner_;
  double multiple_;
  double moving_norm_ = 0;  // 0: nothing seen yet
};

}  // namespace motley::policy
