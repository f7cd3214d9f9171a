#include "run/desk.h"

#include <algorithm>
#include <boost/asio/post.hpp>
#include <exception>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace motley::run {

void Computation::comes(const std::shared_ptr<Arrival>& newer) {
  const std::lock_guard lock(mutex_);
  newer_ = newer;
}

std::shared_ptr<Arrival> Computation::newer() {
  const std::lock_guard lock(mutex_);
  return newer_;
}

/// What flows between the mathematics and the pump while one step is computed. An emulated device with a cadence stands still where such a
/// device would, and what it makes leaves when its time has come.
class Desk::Stream final : public Flow {
 public:
  Stream(Desk& desk, std::shared_ptr<Computation> computation, const std::optional<cluster::Device::Stint>& stint, const Clock& clock)
      : desk_(desk), computation_(std::move(computation)), clock_(clock), missing_(desk.kit_.layout.slices.size()) {
    if (stint && !desk.kit_.cadence.empty()) length_ = stint->end - computation_->began;
    for (std::size_t s = 0; s < missing_.size(); ++s) missing_[s] = desk.kit_.layout.slices[s].count;
  }
  /// How long it stood still, on the device that there is or the one that is emulated.
  [[nodiscard]] Duration stood() const { return length_ ? stood_ : idle(); }
  [[nodiscard]] Duration waited() const { return waited_; }
  /// How much of its time the device that there is did not compute.
  [[nodiscard]] Duration idle() const { return told_.value_or(waited_); }

  bool need(std::uint64_t first, std::uint64_t last) override {
    const auto since = std::chrono::steady_clock::now();
    const bool there = computation_->values->await(first, last);
    waited_ += std::chrono::steady_clock::now() - since;
    if (there && length_) stand(first, last);
    return there && !computation_->cancelled;
  }

  bool take(std::uint64_t first, std::uint64_t last, const std::function<void(const Arriving&)>& each) override {
    if (!desk_.keeps_values()) return false;
    computation_->values->hand_over(first, last, each);
    return true;
  }

  [[nodiscard]] std::uint64_t id() const override { return computation_id(computation_->order); }
  [[nodiscard]] std::optional<Upcoming> upcoming() override { return desk_.upcoming(); }

  /// For devices that do a step at once.
  [[nodiscard]] std::span<const std::uint32_t> foreseen() override {
    desk_.foreseen_.clear();
    if (!length_) desk_.epochs_.samples_of(desk_.epochs_.likely_after(desk_.before_, computation_->order.lease), desk_.foreseen_);
    return desk_.foreseen_;
  }

  void stood(Duration time) override { told_ = told_.value_or(Duration{0}) + time; }

  /// A device that has once kept something back takes it along however the next one travels.
  [[nodiscard]] const Coding* coding() override {
    const wire::Order& order = computation_->order;
    const bool whole = order.push_bits == plain_bits && !desk_.codes_;
    if (length_ || (whole && !desk_.halves())) return nullptr;
    coding_ = Coding{};
    bits_ = whole ? half_bits : order.push_bits;
    for (const store::Slice& slice : desk_.kit_.layout.slices) coding_->slices.push_back({slice.offset, slice.count, slice.bits(bits_)});
    coding_->as_made = whole;
    if (whole) return &*coding_;
    coding_->afresh = !desk_.codes_;
    // What was kept back is in units of the update that it was left by. A delta does not scale with the rate.
    const double unit = desk_.local_steps() ? 0 : static_cast<double>(computation_->samples) * order.rate;
    if (desk_.unit_ > 0 && unit > 0) coding_->rescale = static_cast<float>(desk_.unit_ / unit);
    if (unit > 0) desk_.unit_ = unit;
    return &*coding_;
  }

  void coded(std::uint64_t first, std::uint64_t last) override {
    if (!coding_->as_made) desk_.codes_ = true;
    computation_->coded = bits_;
    made(first, last);
  }

  void made(std::uint64_t first, std::uint64_t last) override {
    if (!desk_.streams()) return;
    const auto [from, to] = desk_.kit_.layout.touching(first, last);
    for (std::size_t s = from; s < to; ++s) {
      const store::Slice& slice = desk_.kit_.layout.slices[s];
      missing_[s] -= std::min(last, slice.offset + slice.count) - std::max(first, slice.offset);
      if (missing_[s] > 0) continue;
      if (length_) await(desk_.kit_.cadence.made[s]);
      boost::asio::post(desk_.pump_, [&owner = desk_.owner_, alive = desk_.alive_, computation = computation_, s] {
        if (*alive && !computation->cancelled) owner.produced(computation, SliceId{static_cast<std::uint32_t>(s)});
      });
    }
  }

 private:
  [[nodiscard]] std::chrono::steady_clock::time_point at(double part) const {
    return clock_.real(computation_->began + stood_ + from_seconds(part * seconds(*length_)));
  }
  /// The emulated device stood still if what it read came later than it.
  void stand(std::uint64_t first, std::uint64_t last) {
    const auto [from, to] = desk_.kit_.layout.touching(first, last);
    for (std::size_t s = from; s < to; ++s) {
      const auto late = computation_->values->when(SliceId{static_cast<std::uint32_t>(s)}) - at(desk_.kit_.cadence.read[s]);
      stood_ += std::max(Duration(late), Duration{0});
    }
  }
  void await(double part) {
    std::unique_lock lock(desk_.mutex_);
    desk_.cancelled_.wait_until(lock, at(part), [&] { return computation_->cancelled.load(); });
  }

  Desk& desk_;
  std::shared_ptr<Computation> computation_;
  Clock clock_;
  std::vector<std::uint64_t> missing_;  // values, by slice
  std::optional<Coding> coding_;
  std::uint8_t bits_ = plain_bits;  // of it
  std::optional<Duration> length_;  // of an emulated step that goes by its cadence
  Duration stood_{};                // of it
  std::chrono::steady_clock::duration waited_{};
  std::optional<Duration> told_;  // by the device
};

/// Looks at the clock between pieces: one large piece first, for as long as nothing can go wrong, then small ones until the time is up.
class Desk::ByClock final : public store::Pace {
 public:
  ByClock(Computation& computation, const Stream& stream) : computation_(computation), stream_(stream), since_(Time::now()) {}

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
class Desk::AtOnceInTime final : public store::Pace {
 public:
  AtOnceInTime(Desk& desk, Computation& computation) : desk_(desk), computation_(computation) {}

  Piece next(std::uint64_t done, std::uint64_t left) override {
    const Piece piece{desk_.sizes_.fitting(left, computation_.order.limit, desk_.kit_.grain, done), true};
    computation_.samples = done + piece.samples;
    desk_.meet(piece.samples);
    return piece;
  }

 private:
  Desk& desk_;
  Computation& computation_;
};

/// What comes in between local steps. An emulated device takes each step when its time has come, so that it hears what such a device would.
class Desk::Newer final : public store::News {
 public:
  Newer(Desk& desk, Computation& computation, const std::optional<cluster::Device::Stint>& stint, const Clock& clock)
      : desk_(desk), computation_(computation), stint_(stint), clock_(clock) {}

  std::span<const Piece> since(std::uint32_t done) override {
    if (stint_) {
      const double part = static_cast<double>(done) / computation_.order.local_steps;
      const Instant due = computation_.began + from_seconds(part * seconds(stint_->end - computation_.began));
      std::unique_lock lock(desk_.mutex_);
      desk_.cancelled_.wait_until(lock, clock_.real(due), [&] { return computation_.cancelled.load(); });
    }
    pieces_.clear();
    check(!held_ || held_ == computation_.newer(), "one pull at most is newer than a round");
    held_ = computation_.newer();
    if (held_) held_->take(taken_, pieces_);
    return pieces_;
  }

 private:
  Desk& desk_;
  Computation& computation_;
  const std::optional<cluster::Device::Stint>& stint_;
  const Clock& clock_;
  std::shared_ptr<Arrival> held_;  // whose values the pieces are
  std::vector<bool> taken_;
  std::vector<Piece> pieces_;
};

Desk::Desk(boost::asio::io_context& pump, DeskKit kit, DeskOwner& owner)
    : pump_(pump),
      kit_(std::move(kit)),
      owner_(owner),
      replica_(kit_.replica),
      epochs_(kit_.epoch_samples, kit_.seed, kit_.shards),
      alive_(std::make_shared<bool>(true)) {}

Desk::~Desk() {
  abandon();
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  cancelled_.notify_all();
  *alive_ = false;
}

/// A batch of this size is next.
void Desk::meet(std::uint64_t size) { first_of_size_ = kit_.meets_sizes && size > 0 && sizes_.meet(size); }

void Desk::foretell(const wire::Order& order, const std::shared_ptr<Arrival>& values) {
  const std::lock_guard lock(mutex_);
  foretold_ = Foretold{order, values};
}

/// Not of a size that is new to the device, which is to be known as the first of its size; nor where time may cut it shorter.
std::optional<Upcoming> Desk::upcoming() {
  std::optional<Foretold> next;
  {
    const std::lock_guard lock(mutex_);
    next = std::exchange(foretold_, std::nullopt);
  }
  const auto as_usual = [&](const wire::Order& order) {
    return order.limit <= Duration{0} && (!kit_.meets_sizes || sizes_.met(order.lease.size()));
  };
  if (next && as_usual(next->order)) {
    std::vector<std::uint32_t> samples;
    epochs_.samples_of(next->order.lease, samples);
    ahead_ = std::make_unique<Ahead>(next->order, std::move(next->values), std::move(samples));
  }
  if (!ahead_ || ahead_.get() == last_ahead_) return std::nullopt;
  return ahead_->told();
}

void Desk::compute(const std::shared_ptr<Computation>& computation, const Clock& clock) {
  abandon();
  current_ = computation;
  thread_.post([this, computation, clock] { work(computation, clock); });
}

void Desk::abandon() {
  {
    const std::lock_guard lock(mutex_);
    foretold_.reset();
    if (!current_) return;
    current_->cancelled = true;
  }
  cancelled_.notify_all();
  current_->values->cancel();
  current_.reset();
}

void Desk::when_free(std::function<void()> then) {
  thread_.post([this, then = std::move(then)] {
    boost::asio::post(pump_, [alive = alive_, then] {
      if (*alive) then();
    });
  });
}

/// The step was cancelled: its way leads nowhere. An emulated device that hangs hears of that when it moves again.
void Desk::stop(const Clock& clock) {
  replica_.start_over();
  if (!kit_.emulated) return;
  std::unique_lock lock(mutex_);
  cancelled_.wait_until(lock, clock.real(kit_.emulated->hangs_until(clock.now())), [&] { return closing_; });
}

void Desk::start_over() {
  abandon();
  thread_.post([this] {
    replica_.start_over();
    codes_ = false;
    unit_ = 0;
  });
}

store::Worth Desk::contribute(Computation& computation, const Lease& lease, Stream& stream,
                              const std::optional<cluster::Device::Stint>& stint, const Clock& clock) {
  const wire::Order& order = computation.order;
  const std::span<const float> values = computation.values->buffer().floats();
  const std::vector<std::uint32_t>& samples = epochs_.samples_of(lease);
  if (!replica_.local_steps()) {
    ByClock by_clock(computation, stream);
    AtOnceInTime in_time(*this, computation);
    store::AtOnce at_once;
    store::Pace& pace = stint ? at_once : kit_.grain > 0 ? static_cast<store::Pace&>(in_time) : by_clock;
    return replica_.contribute(*kit_.source, {values, samples}, computation.out->floats(), stream, pace);
  }
  if (std::exchange(computed_for_, order.worker) != order.worker) replica_.start_over();
  meet(samples.size() / order.local_steps);
  Newer news(*this, computation, stint, clock);
  const store::Round round{
      values,           order.version,   samples, order.local_steps, order.rate, order.parameters == order.step, order.missing < order.step,
      order.correction, order.mean_steps};
  return replica_.contribute(*kit_.source, round, news, computation.out->floats(), stream);
}

void Desk::work(const std::shared_ptr<Computation>& computation, const Clock& clock) {
  if (computation->cancelled) return;
  const wire::Order& order = computation->order;
  const auto since = std::chrono::steady_clock::now();
  Lease lease = order.lease;
  std::optional<cluster::Device::Stint> stint;  // of an emulated device: how far it comes is known beforehand
  if (kit_.emulated) {
    stint = kit_.emulated->work(computation->began, lease.size(), order.local_steps, order.limit, order.micro);
    lease.cut(stint->samples);
    computation->samples = stint->samples;
  }
  Stream stream(*this, computation, stint, clock);
  store::Worth worth;
  first_of_size_ = false;
  last_ahead_ = ahead_.get();
  try {
    worth = contribute(*computation, lease, stream, stint, clock);
    before_ = order.lease;
    if (computation->coded == plain_bits && worth.finite) codes_ = false;  // it took everything along
    if (ahead_.get() == last_ahead_) ahead_.reset();                       // it was this step, or nothing: its values are no longer needed
  } catch (const std::exception& failure) {                                // the border to torch's exceptions in a real cluster
    boost::asio::post(pump_, [&owner = owner_, alive = alive_, computation, what = std::string(failure.what())] {
      if (*alive && !computation->cancelled) owner.failed(what);
    });
    return;
  }
  if (computation->cancelled) return stop(clock);
  DeskTime time{std::chrono::steady_clock::now() - since - stream.idle(), stream.stood(), first_of_size_};
  if (!first_of_size_) sizes_.took(worth.samples, time.compute);
  if (stint) {
    time.first_of_size = stint->first_of_size;
    if (!streams()) time.stood = {};  // it had everything when it began
    std::unique_lock lock(mutex_);
    if (cancelled_.wait_until(lock, clock.real(stint->end + time.stood), [&] { return computation->cancelled.load(); })) {
      lock.unlock();
      return stop(clock);
    }
    time.compute = std::max(time.compute, stint->end - computation->began);
  }
  boost::asio::post(pump_, [this, alive = alive_, computation, worth, time] {
    if (!*alive || computation->cancelled) return;
    if (current_ == computation) current_.reset();
    owner_.computed(computation, worth, time);
  });
}

}  // namespace motley::run
