// Rules: how heavy each contribution of an update counts, and what the update is made of. Weights go by samples, never by workers.
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
  /// One weight per member, into `weights` (same size).
  virtual void weigh(std::span<const Contribution> members, std::span<double> weights) = 0;
  /// The part of a global batch that the members make up.
  [[nodiscard]] virtual double share(std::span<const Contribution> members) const = 0;
  /// What a checkpoint must keep of it, under the same names whatever its state; restore() reads them.
  virtual void save(StateWriter& state) const = 0;
  virtual void restore(StateReader& state) = 0;
};

/// `mean`: weight b_i/B with B the fixed global batch, whether the members come together or one by one: one learning rate serves every
/// gate.
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

/// `model mean`: weight = samples_i / sum of samples: the mean of the local models, by what each has learned from.
class RuleModelMean : public Rule {
 public:
  [[nodiscard]] Payload payload() const override { return Payload::delta; }
  void weigh(std::span<const Contribution> members, std::span<double> weights) override;
  [[nodiscard]] double share(std::span<const Contribution>) const override { return 1; }
  void save(StateWriter&) const override {}
  void restore(StateReader&) override {}
};

/// Guard around any rule, for gates that allow staleness: a contribution whose norm exceeds `multiple` times its moving average (0.95) is
/// scaled down to that. At a well chosen learning rate it never acts; at two or three times that rate it prevents collapse.
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
