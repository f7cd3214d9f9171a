#include "runtime/step_executor.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace motley::runtime {

void Computation::comes(const std::shared_ptr<IncomingParameters>& newer) {
  const std::lock_guard lock(mutex_);
  newer_ = newer;
}

std::shared_ptr<IncomingParameters> Computation::newer() {
  const std::lock_guard lock(mutex_);
  return newer_;
}

/// What flows between the mathematics and the pump while one step is computed. An emulated device with a cadence stands still where such a
/// device would, and what it makes leaves when its time has come.
class StepExecutor::Stream final : public StepIo {
 public:
  Stream(StepExecutor& step_executor, std::shared_ptr<Computation> computation, const std::optional<cluster::Device::StepOutcome>& outcome,
         const Clock& clock)
      : step_executor_(step_executor),
        computation_(std::move(computation)),
        clock_(clock),
        missing_(step_executor.setup_.layout.slices.size()) {
    if (outcome && !step_executor.setup_.layer_timing.empty()) length_ = outcome->end - computation_->began;
    for (std::size_t s = 0; s < missing_.size(); ++s) missing_[s] = step_executor.setup_.layout.slices[s].count;
  }
  /// How long it stood still, on the device that there is or the one that is emulated.
  [[nodiscard]] Duration stalled() const { return length_ ? stalled_ : idle(); }
  [[nodiscard]] Duration waited() const { return waited_; }
  /// How much of its time the device that there is did not compute.
  [[nodiscard]] Duration idle() const { return recorded_.value_or(waited_); }

  bool wait_for(std::uint64_t first, std::uint64_t last) override {
    const auto since = std::chrono::steady_clock::now();
    const bool there = computation_->values->await(first, last);
    waited_ += std::chrono::steady_clock::now() - since;
    if (there && length_) stand(first, last);
    return there && !computation_->cancelled;
  }

  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const IncomingValues&)>& each) override {
    if (!step_executor_.keeps_values()) return false;
    computation_->values->hand_over(first, last, each);
    return true;
  }

  [[nodiscard]] std::uint64_t id() const override { return computation_id(computation_->order); }
  [[nodiscard]] std::optional<NextStep> next_step() override { return step_executor_.next_step(); }

  /// For devices that do a step at once.
  [[nodiscard]] std::span<const std::uint32_t> likely_next_samples() override {
    step_executor_.likely_next_samples_.clear();
    if (!length_)
      step_executor_.epochs_.samples_of(step_executor_.epochs_.likely_after(step_executor_.before_, computation_->order.lease),
                                        step_executor_.likely_next_samples_);
    return step_executor_.likely_next_samples_;
  }

  void stalled(Duration time) override { recorded_ = recorded_.value_or(Duration{0}) + time; }

  /// A device that has once kept something back takes it along however the next one travels.
  [[nodiscard]] const GradientEncoding* gradient_encoding() override {
    const wire::Order& order = computation_->order;
    const bool whole = order.push_bits == fp32_bits && !step_executor_.codes_;
    if (length_ || (whole && !step_executor_.bf16_transfer())) return nullptr;
    coding_ = GradientEncoding{};
    bits_ = whole ? bf16_bits : order.push_bits;
    for (const store::Slice& slice : step_executor_.setup_.layout.slices)
      coding_->slices.push_back({slice.offset, slice.count, slice.bits(bits_)});
    coding_->bf16_as_is = whole;
    if (whole) return &*coding_;
    coding_->reset_residual = !step_executor_.codes_;
    // What was kept back is in units of the update that it was left by. A delta does not scale with the rate.
    const double unit = step_executor_.local_steps() ? 0 : static_cast<double>(computation_->samples) * order.rate;
    if (step_executor_.unit_ > 0 && unit > 0) coding_->rescale = static_cast<float>(step_executor_.unit_ / unit);
    if (unit > 0) step_executor_.unit_ = unit;
    return &*coding_;
  }

  void encoded_gradient_ready(std::uint64_t first, std::uint64_t last) override {
    if (!coding_->bf16_as_is) step_executor_.codes_ = true;
    computation_->coded = bits_;
    gradient_ready(first, last);
  }

  void gradient_ready(std::uint64_t first, std::uint64_t last) override {
    if (!step_executor_.streams()) return;
    const auto [from, to] = step_executor_.setup_.layout.touching(first, last);
    for (std::size_t s = from; s < to; ++s) {
      const store::Slice& slice = step_executor_.setup_.layout.slices[s];
      missing_[s] -= std::min(last, slice.offset + slice.count) - std::max(first, slice.offset);
      if (missing_[s] > 0) continue;
      if (length_) await(step_executor_.setup_.layer_timing.gradient_ready[s]);
      boost::asio::post(step_executor_.event_loop_,
                        [&owner = step_executor_.owner_, alive = step_executor_.alive_, computation = computation_, s] {
                          if (*alive && !computation->cancelled) owner.produced(computation, SliceId{static_cast<std::uint32_t>(s)});
                        });
    }
  }

 private:
  [[nodiscard]] std::chrono::steady_clock::time_point at(double part) const {
    return clock_.real(computation_->began + stalled_ + from_seconds(part * seconds(*length_)));
  }
  /// The emulated device stood still if what it read came later than it.
  void stand(std::uint64_t first, std::uint64_t last) {
    const auto [from, to] = step_executor_.setup_.layout.touching(first, last);
    for (std::size_t s = from; s < to; ++s) {
      const auto late = computation_->values->when(SliceId{static_cast<std::uint32_t>(s)}) - at(step_executor_.setup_.layer_timing.read[s]);
      stalled_ += std::max(Duration(late), Duration{0});
    }
  }
  void await(double part) {
    std::unique_lock lock(step_executor_.mutex_);
    step_executor_.cancelled_.wait_until(lock, at(part), [&] { return computation_->cancelled.load(); });
  }

  StepExecutor& step_executor_;
  std::shared_ptr<Computation> computation_;
  Clock clock_;
  std::vector<std::uint64_t> missing_;  // values, by slice
  std::optional<GradientEncoding> coding_;
  std::uint8_t bits_ = fp32_bits;   // of it
  std::optional<Duration> length_;  // of an emulated step that goes by its cadence
  Duration stalled_{};              // of it
  std::chrono::steady_clock::duration waited_{};
  std::optional<Duration> recorded_;  // by the device
};

/// Looks at the clock between pieces: one large piece first, for as long as nothing can go wrong, then small ones until the time is up.
class StepExecutor::TimedMicroBatcher final : public store::MicroBatcher {
 public:
  TimedMicroBatcher(Computation& computation, const Stream& stream) : computation_(computation), stream_(stream), since_(Time::now()) {}

  Piece next(std::uint64_t done, std::uint64_t left) override {
    const wire::Order& order = computation_.order;
    Piece piece{left, true};
    if (order.limit > Duration{0}) {
      const Duration spent = Time::now() - since_ - stream_.waited();
      const std::uint64_t micro = std::max<std::uint64_t>(order.micro, 1);
      if (done == 0) {
        piece.samples = std::min(left, std::max(micro, (done + left) / 2));
        piece.last = piece.samples == left;
      } else {
        const double each = seconds(spent) / static_cast<double>(done);
        const double room = seconds(order.limit - spent) / each;  // samples
        piece.samples = std::min(left, micro);
        // After this piece another one would end further from the limit than it began.
        piece.last = room < 1.5 * static_cast<double>(micro) || piece.samples == left;
      }
    }
    if (piece.last) computation_.samples = done + piece.samples;
    return piece;
  }

 private:
  using Time = std::chrono::steady_clock;
  Computation& computation_;
  const Stream& stream_;
  Time::time_point since_;
};

/// One piece, of as many samples as fit into the time by what they took lately.
class StepExecutor::TimedSingleBatch final : public store::MicroBatcher {
 public:
  TimedSingleBatch(StepExecutor& step_executor, Computation& computation) : step_executor_(step_executor), computation_(computation) {}

  Piece next(std::uint64_t done, std::uint64_t left) override {
    const Piece piece{step_executor_.sizes_.largest_fitting(left, computation_.order.limit, step_executor_.setup_.batch_multiple, done),
                      true};
    computation_.samples = done + piece.samples;
    step_executor_.note_batch_size(piece.samples);
    return piece;
  }

 private:
  StepExecutor& step_executor_;
  Computation& computation_;
};

/// What comes in between local steps. An emulated device takes each step when its time has come, so that it hears what such a device would.
class StepExecutor::Newer final : public store::IncomingUpdates {
 public:
  Newer(StepExecutor& step_executor, Computation& computation, const std::optional<cluster::Device::StepOutcome>& outcome,
        const Clock& clock)
      : step_executor_(step_executor), computation_(computation), outcome_(outcome), clock_(clock) {}

  std::span<const Piece> since(std::uint32_t done) override {
    if (outcome_) {
      const double part = static_cast<double>(done) / computation_.order.local_steps;
      const Instant due = computation_.began + from_seconds(part * seconds(outcome_->end - computation_.began));
      std::unique_lock lock(step_executor_.mutex_);
      step_executor_.cancelled_.wait_until(lock, clock_.real(due), [&] { return computation_.cancelled.load(); });
    }
    pieces_.clear();
    check(!held_ || held_ == computation_.newer(), "one pull at most is newer than a round");
    held_ = computation_.newer();
    if (held_) held_->take(taken_, pieces_);
    return pieces_;
  }

 private:
  StepExecutor& step_executor_;
  Computation& computation_;
  const std::optional<cluster::Device::StepOutcome>& outcome_;
  const Clock& clock_;
  std::shared_ptr<IncomingParameters> held_;  // whose values the pieces are
  std::vector<bool> taken_;
  std::vector<Piece> pieces_;
};

StepExecutor::StepExecutor(boost::asio::io_context& event_loop, StepExecutorSetup setup, StepExecutorOwner& owner)
    : event_loop_(event_loop),
      setup_(std::move(setup)),
      owner_(owner),
      replica_(setup_.replica),
      epochs_(setup_.epoch_samples, setup_.seed, setup_.shards),
      alive_(std::make_shared<bool>(true)) {}

StepExecutor::~StepExecutor() {
  abandon();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  cancelled_.notify_all();
  *alive_ = false;
}

/// A batch of this size is next.
void StepExecutor::note_batch_size(std::uint64_t size) {
  new_batch_size_ = setup_.new_sizes_are_slow && size > 0 && sizes_.note_batch_size(size);
}

void StepExecutor::prefetch(const wire::Order& order, const std::shared_ptr<IncomingParameters>& values) {
  const std::lock_guard lock(mutex_);
  prefetched_ = Prefetched{order, values};
}

/// Not of a size that is new to the device, which is to be known as the first of its size; nor where time may cut it shorter.
std::optional<NextStep> StepExecutor::next_step() {
  std::optional<Prefetched> next;
  {
    const std::lock_guard lock(mutex_);
    next = std::exchange(prefetched_, std::nullopt);
  }
  const auto as_usual = [&](const wire::Order& order) {
    return order.limit <= Duration{0} && (!setup_.new_sizes_are_slow || sizes_.contains(order.lease.size()));
  };
  if (next && as_usual(next->order)) {
    std::vector<std::uint32_t> samples;
    epochs_.samples_of(next->order.lease, samples);
    next_step_io_ = std::make_unique<NextStepIo>(next->order, std::move(next->values), std::move(samples));
  }
  if (!next_step_io_ || next_step_io_.get() == last_next_step_io_) return std::nullopt;
  return next_step_io_->as_next_step();
}

void StepExecutor::compute(const std::shared_ptr<Computation>& computation, const Clock& clock) {
  abandon();
  current_ = computation;
  thread_.post([this, computation, clock] { work(computation, clock); });
}

void StepExecutor::abandon() {
  {
    const std::lock_guard lock(mutex_);
    prefetched_.reset();
    if (!current_) return;
    current_->cancelled = true;
  }
  cancelled_.notify_all();
  current_->values->cancel();
  current_.reset();
}

void StepExecutor::when_free(std::function<void()> then) {
  thread_.post([this, then = std::move(then)] {
    boost::asio::post(event_loop_, [alive = alive_, then] {
      if (*alive) then();
    });
  });
}

/// The step was cancelled: its way leads nowhere. An emulated device that hangs hears of that when it moves again.
void StepExecutor::stop(const Clock& clock) {
  replica_.start_over();
  if (!setup_.emulated) return;
  std::unique_lock lock(mutex_);
  cancelled_.wait_until(lock, clock.real(setup_.emulated->hangs_until(clock.now())), [&] { return closing_; });
}

void StepExecutor::start_over() {
  abandon();
  thread_.post([this] {
    replica_.start_over();
    codes_ = false;
    unit_ = 0;
  });
}

StepReport StepExecutor::contribute(Computation& computation, const Lease& lease, Stream& stream,
                                    const std::optional<cluster::Device::StepOutcome>& outcome, const Clock& clock) {
  const wire::Order& order = computation.order;
  const std::span<const float> values = computation.values->buffer().floats();
  const std::vector<std::uint32_t>& samples = epochs_.samples_of(lease);
  if (!replica_.local_steps()) {
    TimedMicroBatcher timed(computation, stream);
    TimedSingleBatch in_time(*this, computation);
    store::SingleBatch single_batch;
    store::MicroBatcher& batcher = outcome ? single_batch : setup_.batch_multiple > 0 ? static_cast<store::MicroBatcher&>(in_time) : timed;
    return replica_.contribute(*setup_.source, {values, samples}, computation.out->floats(), stream, batcher);
  }
  if (std::exchange(computed_for_, order.worker) != order.worker) replica_.start_over();
  note_batch_size(samples.size() / order.local_steps);
  Newer incoming(*this, computation, outcome, clock);
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
  std::optional<cluster::Device::StepOutcome> outcome;  // of an emulated device: how far it comes is known beforehand
  if (setup_.emulated) {
    outcome = setup_.emulated->work(computation->began, lease.size(), order.local_steps, order.limit, order.micro);
    lease.cut(outcome->samples);
    computation->samples = outcome->samples;
  }
  Stream stream(*this, computation, outcome, clock);
  StepReport report;
  new_batch_size_ = false;
  last_next_step_io_ = next_step_io_.get();
  try {
    report = contribute(*computation, lease, stream, outcome, clock);
    before_ = order.lease;
    if (computation->coded == fp32_bits && report.finite) codes_ = false;  // it took everything along
    if (next_step_io_.get() == last_next_step_io_) next_step_io_.reset();  // it was this step, or nothing: its values are no longer needed
  } catch (const std::exception& failure) {                                // the border to torch's exceptions in a real cluster
    boost::asio::post(event_loop_, [&owner = owner_, alive = alive_, computation, what = std::string(failure.what())] {
      if (*alive && !computation->cancelled) owner.failed(what);
    });
    return;
  }
  if (computation->cancelled) return stop(clock);
  report.compute = std::chrono::steady_clock::now() - since - stream.idle();
  report.stalled = stream.stalled();
  report.new_batch_size = new_batch_size_;
  if (!new_batch_size_) sizes_.observe(report.samples, report.compute);
  if (outcome) {
    report.new_batch_size = outcome->new_batch_size;
    if (!streams()) report.stalled = {};  // it had everything when it began
    std::unique_lock lock(mutex_);
    if (cancelled_.wait_until(lock, clock.real(outcome->end + report.stalled), [&] { return computation->cancelled.load(); })) {
      lock.unlock();
      return stop(clock);
    }
    report.compute = std::max(report.compute, outcome->end - computation->began);
  }
  boost::asio::post(event_loop_, [this, alive = alive_, computation, report] {
    if (!*alive || computation->cancelled) return;
    if (current_ == computation) current_.reset();
    owner_.computed(computation, report);
  });
}

}  // namespace motley::runtime
