#include "runtime/step_executor.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <chrono>
#include <exception>
#include <utility>

#include "base/bits.h"
#include "runtime/device_warm_up.h"
#include "runtime/newer_parameters.h"
#include "runtime/timed_micro_batcher.h"
#include "runtime/timed_single_batch.h"

namespace motley::runtime {

StepExecutor::StepExecutor(boost::asio::io_context& event_loop, StepExecutorSetup setup, StepExecutorOwner& owner)
    : event_loop_(event_loop),
      prefetcher_(epochs_, [this](const wire::Order& order) { return may_begin_early(order); }),
      setup_(std::move(setup)),
      owner_(owner),
      replica_(setup_.replica),
      epochs_(setup_.epoch_samples, setup_.seed, setup_.shards),
      encodings_(setup_.layout, {bf16_transfer(), local_steps()}) {}

StepExecutor::~StepExecutor() {
  abandon();
  wait_.interrupt([this] { closing_ = true; });
}

void StepExecutor::deliver(std::function<void()> handler) {
  boost::asio::post(event_loop_, [alive = anchor_.watch(), handler = std::move(handler)] {
    if (!alive.gone()) handler();
  });
}

void StepExecutor::warm_up(std::function<void(std::optional<cluster::Affine>)> then) {
  thread_.post([this, then = std::move(then)] {
    std::optional<cluster::Affine> cost;
    try {
      if (setup_.emulated && setup_.batch_multiple > 1) cost = setup_.emulated->cost();
      if (setup_.usual > 0) {
        DeviceWarmUp warm_up(*setup_.source,
                             {setup_.layout.values, setup_.epoch_samples, setup_.usual, setup_.batch_multiple, setup_.replica.local_steps});
        cost = warm_up.measure([this](std::uint64_t size) { note_batch_size(size); });
      }
    } catch (const std::exception&) {  // the first step will fail as well, and is reported
    }
    deliver([then, cost] { then(cost); });
  });
}

void StepExecutor::compute(const std::shared_ptr<Computation>& computation, const Clock& clock) {
  abandon();
  current_ = computation;
  thread_.post([this, computation, clock] { work(computation, clock); });
}

void StepExecutor::abandon() {
  prefetcher_.cancel();
  if (!current_) return;
  wait_.interrupt([this] { current_->cancelled = true; });
  current_->values->cancel();
  current_.reset();
}

void StepExecutor::when_free(std::function<void()> then) {
  thread_.post([this, then = std::move(then)] { deliver(then); });
}

void StepExecutor::start_over() {
  abandon();
  thread_.post([this] {
    replica_.start_over();
    encodings_.reset();
  });
}

// The computing thread ------------------------------------------------------------------------------------------------------------------

void StepExecutor::note_batch_size(std::uint64_t size) {
  new_batch_size_ = setup_.new_sizes_are_slow && size > 0 && sizes_.note_batch_size(size);
}

/// Not with a time limit, which may cut it; nor of a new size, which must be timed as the first of its size.
bool StepExecutor::may_begin_early(const wire::Order& order) const {
  return order.limit <= Duration{0} && (!setup_.new_sizes_are_slow || sizes_.contains(order.lease.size()));
}

/// The step was cancelled: its local model is not valid. An emulated device that hangs notices only when it resumes.
void StepExecutor::end_cancelled(const Clock& clock) {
  replica_.start_over();
  if (setup_.emulated) wait_.until(clock.real(setup_.emulated->hangs_until(clock.now())), [&] { return closing_; });
}

StepStream StepExecutor::stream_of(const std::shared_ptr<Computation>& computation, const EmulatedOutcome& outcome, const Clock& clock) {
  std::optional<Duration> emulated;
  if (outcome && !setup_.layer_timing.empty()) emulated = outcome->end - computation->began;
  const auto ready = [this, computation](SliceId slice) {
    deliver([this, computation, slice] {
      if (!computation->cancelled) owner_.produced(computation, slice);
    });
  };
  return {
      {setup_.layout, setup_.layer_timing, encodings_, prefetcher_, wait_, streams(), keeps_values(), ready}, computation, emulated, clock};
}

StepReport StepExecutor::contribute(Computation& computation, const Lease& lease, StepStream& stream, const EmulatedOutcome& outcome,
                                    const Clock& clock) {
  const wire::Order& order = computation.order;
  const std::span<const float> values = computation.values->buffer().floats();
  const std::vector<std::uint32_t>& samples = epochs_.samples_of(lease);
  if (!replica_.local_steps()) {
    TimedMicroBatcher micro_batches(computation, stream);
    TimedSingleBatch timed_batch(sizes_, setup_.batch_multiple, computation, [this](std::uint64_t size) { note_batch_size(size); });
    store::SingleBatch single_batch;
    store::MicroBatcher* batcher = &micro_batches;
    if (setup_.batch_multiple > 0) batcher = &timed_batch;
    if (outcome) batcher = &single_batch;
    return replica_.contribute(*setup_.source, {values, samples}, computation.out->floats(), stream, *batcher);
  }
  if (std::exchange(computed_for_, order.worker) != order.worker) replica_.start_over();
  note_batch_size(samples.size() / order.local_steps);
  std::optional<Duration> emulated;
  if (outcome) emulated = outcome->end - computation.began;
  NewerParameters incoming(computation, emulated, wait_, clock);
  const store::LocalRound round{
      values,           order.version,   samples, order.local_steps, order.rate, order.parameters == order.step, order.missing < order.step,
      order.correction, order.mean_steps};
  return replica_.contribute(*setup_.source, round, incoming, computation.out->floats(), stream);
}

void StepExecutor::work(const std::shared_ptr<Computation>& computation, const Clock& clock) {
  if (computation->cancelled) return;
  const wire::Order& order = computation->order;
  const auto since = std::chrono::steady_clock::now();
  Lease lease = order.lease;
  EmulatedOutcome outcome;
  if (setup_.emulated) {
    outcome = setup_.emulated->work(computation->began, lease.size(), order.local_steps, order.limit, order.micro);
    lease.cut(outcome->samples);
    computation->samples = outcome->samples;
  }
  StepStream stream = stream_of(computation, outcome, clock);
  StepReport report;
  new_batch_size_ = false;
  prefetcher_.begin_step();
  try {
    report = contribute(*computation, lease, stream, outcome, clock);
  } catch (const std::exception& failure) {  // of torch
    return deliver([this, computation, what = std::string(failure.what())] {
      if (!computation->cancelled) owner_.failed(what);
    });
  }
  prefetcher_.end_step(order.lease);
  if (computation->coded == fp32_bits && report.finite) encodings_.sent_residual();
  if (computation->cancelled) return end_cancelled(clock);
  report.compute = std::chrono::steady_clock::now() - since - stream.idle();
  report.stalled = stream.stalled_time();
  report.new_batch_size = new_batch_size_;
  if (!new_batch_size_) sizes_.observe(report.samples, report.compute);
  if (outcome) {
    report.new_batch_size = outcome->new_batch_size;
    if (!streams()) report.stalled = {};  // it had all parameters when it began
    if (wait_.until(clock.real(outcome->end + report.stalled), [&] { return computation->cancelled.load(); })) return end_cancelled(clock);
    report.compute = std::max(report.compute, outcome->end - computation->began);
  }
  deliver([this, computation, report] {
    if (computation->cancelled) return;
    if (current_ == computation) current_.reset();
    owner_.computed(computation, report);
  });
}

}  // namespace motley::runtime
