// How the process of a chief is connected to its surroundings: the model is evaluated, checkpoints and the trace are written elsewhere.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "base/result.h"
#include "protocol/chief_state.h"
#include "runtime/buffer.h"
#include "runtime/log.h"
#include "store/shard_store.h"
#include "trace/event.h"

namespace motley::runtime {

/// A checkpoint: everything that is needed to continue from one version.
struct Saved {
  protocol::ChiefState chief;
  SharedBuffer values;
  store::Moments moments;
};

struct EvaluationResult {
  double accuracy = 0;
  double loss = 0;
};

/// `evaluate` and `save` are called on a thread of their own, one at a time and in order; the others on the event-loop thread.
struct ChiefHooks {
  std::function<Result<EvaluationResult>(std::span<const float> values)> evaluate;  // may be empty: nothing is evaluated
  std::function<Outcome(const Saved&)> save;                                        // may be empty: nothing is saved
  std::function<void()> saving;               // before a checkpoint is saved: events so far must be on disk before it; may be empty
  std::function<void(const Outcome&)> saved;  // after it; may be empty
  Log log;
  std::function<void(const trace::Event&)> on_event;       // the trace; times are since the first order of this training
  std::function<void(std::span<const std::byte>)> inputs;  // of the chief machine, for replay; may be empty
};

}  // namespace motley::runtime
