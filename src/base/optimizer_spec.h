// OptimizerSpec: the update rule of a job, with its constants.
#pragma once

namespace motley {

enum class OptimizerKind { sgd, adamw };

struct OptimizerSpec {
  OptimizerKind kind = OptimizerKind::sgd;
  double momentum = 0.9;    // sgd
  double weight_decay = 0;  // sgd: added to the gradient; adamw: decoupled
  double beta1 = 0.9;       // adamw
  double beta2 = 0.999;     // adamw
  double epsilon = 1e-8;    // adamw
};

}  // namespace motley
