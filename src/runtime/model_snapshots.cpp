#include "runtime/model_snapshots.h"

#include <cmath>
#include <utility>

#include "codec/magnitude.h"

namespace motley::runtime {

ModelSnapshots::ModelSnapshots(boost::asio::io_context& event_loop, const store::Layout& layout, OptimizerKind optimizer,
                               const ChiefHooks& hooks, SnapshotOwner& owner)
    : hooks_(hooks), owner_(owner), optimizer_(optimizer), assembly_(layout, optimizer), background_(event_loop) {}

void ModelSnapshots::exported(Exported part, Version newest) {
  assembly_.exported(std::move(part));
  take_complete(newest);
}

void ModelSnapshots::received(const wire::StateChunk& head, Version newest) {
  assembly_.received(head);
  take_complete(newest);
}

void ModelSnapshots::take_complete(Version newest) {
  while (auto complete = assembly_.take()) {
    if (complete->version == newest) newest_values_ = complete->values;
    if (complete->evaluate && hooks_.evaluate) evaluate(*complete);
    if (complete->save && hooks_.save && complete->moments) save(*complete);
  }
  owner_.snapshots_advanced();
}

void ModelSnapshots::evaluate(const ModelRequest& wanted) {
  struct Evaluated {
    Result<EvaluationResult> result;
    bool finite_values = false;
  };
  const auto work = [this, values = wanted.values, version = wanted.version] {
    Evaluated evaluated{hooks_.evaluate(std::as_const(*values).floats()), codec::all_finite(std::as_const(*values).floats())};
    if (evaluated.result.ok() && !std::isfinite(evaluated.result->loss)) infinite_loss_ = version;
    return evaluated;
  };
  background_.run(work, [this, at = wanted.at, samples = *wanted.evaluate, version = wanted.version](const Evaluated& evaluated) {
    const auto& [result, finite_values] = evaluated;
    if (!result) return owner_.evaluation_failed(result.error());
    owner_.evaluated({at, trace::Evaluated{.version = version, .samples = samples, .accuracy = result->accuracy, .loss = result->loss}});
    if (!finite_values || !std::isfinite(result->loss)) owner_.model_not_finite(version, finite_values ? "the loss" : "a value");
    owner_.snapshots_advanced();
  });
}

void ModelSnapshots::save(ModelRequest& wanted) {
  if (hooks_.saving) hooks_.saving();
  struct Written {
    bool finite = false;
    std::optional<Outcome> outcome;  // none: it was not saved
  };
  const auto saved = std::make_shared<Saved>(Saved{std::move(*wanted.save), wanted.values, std::move(*wanted.moments)});
  const auto work = [this, saved] {
    Written written;
    written.finite = codec::all_finite(std::as_const(*saved->values).floats()) && codec::all_finite(saved->moments.first) &&
                     codec::all_finite(saved->moments.second);
    if (written.finite && infinite_loss_ != saved->chief.version) written.outcome = hooks_.save(*saved);
    return written;
  };
  background_.run(work, [this, version = saved->chief.version](const Written& written) {
    if (!written.finite) owner_.model_not_finite(version, "a value or an optimizer moment (so that it is not saved)");
    if (written.outcome && hooks_.saved) hooks_.saved(*written.outcome);
    owner_.snapshots_advanced();
  });
}

}  // namespace motley::runtime
