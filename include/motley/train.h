// train(): one call from an objective to a trained model.
#pragma once
#include <motley/export.h>
#include <motley/job.h>
#include <motley/objective.h>
#include <motley/session.h>

#include <cstdint>
#include <vector>

namespace motley {

/// One evaluation of the model during training.
struct Evaluation {
  double seconds = 0;         // since the first order of the training
  std::uint64_t samples = 0;  // counted so far
  double accuracy = 0;        // 0..1
  double loss = 0;            // mean over the evaluation set
};

struct Trained {
  std::vector<float> values{};            // the final model; empty in a worker that joined a chief
  std::vector<Evaluation> evaluations{};  // in order of time; of a chief
  std::uint64_t updates = 0;              // of a chief
  std::uint64_t samples = 0;              // that entered the model; of a chief
  double seconds = 0;                     // from the first order to the end; of a chief
  bool stopped = false;                   // Session::stop ended the training
};

/// Trains until the job's epochs or time are over, or, in a worker, until the chief's training ends; returns then. A chief trains as `job`
/// says; a worker that joins takes the chief's job and ignores `job`. Supports all strategies
/// except pipelines; the chief is the only parameter server. Workers of other processes join, leave and die at any time. There are no
/// checkpoints: when the chief dies, the training is lost. Throws Failure. Costs one thread per worker of this process, one for evaluations
/// and some for updates.
MOTLEY_API Trained train(const Session& session, const Job& job, const MakeObjective& make_objective);

}  // namespace motley
