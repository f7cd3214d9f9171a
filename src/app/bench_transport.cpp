// What the transport costs, beside bare TCP and memcpy: every gradient pushed, applied and pulled back, over loopback and through shared
// memory, between real processes.
#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stdexcept>
#include <thread>
#include <vector>

#include "app/bench.h"
#include "app/bench_transport_child.h"
#include "app/bench_transport_raw.h"
#include "app/stopwatch.h"
#include "store/optimizer.h"
#include "transport/acceptor.h"
#include "transport/connect.h"
#include "transport/segment.h"

namespace motley::app {
namespace {

constexpr std::size_t slice_values = 1U << 18;
constexpr std::size_t slice_bytes = slice_values * sizeof(float);
constexpr std::size_t slices = 128;
constexpr std::size_t values = slices * slice_values;
constexpr std::size_t piece_values = 4096;  // summed and applied while in the first cache
constexpr int rounds = 9;
constexpr Step training{0}, probing{1};
constexpr SliceId urgent{9999};
constexpr std::size_t bulk_slices = 64;

/// The model's values. Weights and momentum of 128 MiB that lie side by side are 2^27 + 2^12 bytes apart, and at this one distance an
/// update takes three times as long on AMD's Zen; presumably such addresses share the tag by which it finds a line in its first cache (Lipp
/// et al., Take A Way, AsiaCCS 2020). So each array begins at its own place within a page; 0 is the optimizer's.
class Flat {
 public:
  Flat(float value, std::size_t place) : memory_(values + page_values, value), skipped_(place * 320 % page_values) {}
  std::span<float> all() { return std::span(memory_).subspan(skipped_, values); }
  std::span<float> slice(SliceId slice) { return all().subspan(slice.value * slice_values, slice_values); }

 private:
  static constexpr std::size_t page_values = 4096 / sizeof(float);
  std::vector<float> memory_;
  std::size_t skipped_;
};

/// Takes slices on its own thread, in the order they became complete: parts summed in the workers' order, then SGD with momentum.
class Applier {
 public:
  using Applied = std::function<void(SliceId)>;
  Applier(std::size_t workers, Applied applied) : applied_(std::move(applied)), optimizer_({}, values) {
    for (std::size_t w = 0; w < workers; ++w) gradients.emplace_back(0.0F, 2 + w);
    optimizer_.begin_update();
    thread_ = std::thread([this] { apply_for_ever(); });
  }
  Applier(const Applier&) = delete;
  Applier& operator=(const Applier&) = delete;
  ~Applier() {
    give({});
    thread_.join();
  }

  Flat weights{1.0F, 1};
  std::vector<Flat> gradients;  // one a worker

  void give(std::optional<SliceId> slice) {
    const std::lock_guard lock(mutex_);
    complete_.push_back(slice);
    changed_.notify_one();
  }

 private:
  void apply_for_ever() {
    while (const std::optional<SliceId> slice = next()) {
      for (std::size_t i = 0; i < slice_values; i += piece_values) apply_piece(slice->value * slice_values + i);
      applied_(*slice);
    }
  }

  std::optional<SliceId> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !complete_.empty(); });
    const std::optional<SliceId> slice = complete_.front();
    complete_.pop_front();
    return slice;
  }

  void apply_piece(std::size_t first) {
    std::span<const float> sum = gradients[0].all().subspan(first, piece_values);
    for (std::size_t w = 1; w < gradients.size(); ++w) {
      const float* part = gradients[w].all().data() + first;
      for (std::size_t i = 0; i < piece_values; ++i) sum_[i] = sum[i] + part[i];
      sum = sum_;
    }
    optimizer_.update_piece(first, weights.all().subspan(first, piece_values), sum, 0.01, 0.9);
  }

  Applied applied_;
  store::Optimizer optimizer_;
  std::array<float, piece_values> sum_{};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::optional<SliceId>> complete_;  // none: end
  std::thread thread_;
};

/// Receives pushes straight into place and gives each new slice to all workers as soon as it is applied.
class Server final : private transport::Accepts, private transport::Hears {
 public:
  explicit Server(std::size_t workers)
      : arrived_(slices), applier_(workers, [this](SliceId slice) { boost::asio::post(io_, [this, slice] { send(slice); }); }) {}

  void serve(const transport::Options& options, const Line& parent) {
    const auto acceptor = transport::listen(io_, transport::TcpAddress{"127.0.0.1", 0}, options, *this);
    parent.say(std::get<transport::TcpAddress>((*acceptor)->address()).port);
    io_.run();
  }

 private:
  void accepted(std::unique_ptr<transport::Connection> connection) override {
    workers_.push_back(std::move(connection));
    workers_.back()->start(*this);
  }
  void refused(const std::string&, const std::string& reason) override { throw std::runtime_error(reason); }

  std::span<std::byte> room(transport::Connection&, const wire::Message& head, std::size_t) override {
    const auto& push = std::get<wire::Push>(head);
    if (push.step == probing) return std::as_writable_bytes(applier_.gradients[0].slice({0}));
    return std::as_writable_bytes(applier_.gradients[push.worker.value].slice(push.slice));
  }
  void received(transport::Connection& from, const wire::Message& head) override {
    const auto& push = std::get<wire::Push>(head);
    if (push.step == probing) return probe(from, push);
    if (++arrived_[push.slice.value] < applier_.gradients.size()) return;
    arrived_[push.slice.value] = 0;
    applier_.give(push.slice);
  }
  /// Answers an urgent slice with how many came before it.
  void probe(transport::Connection& from, const wire::Push& push) {
    if (push.slice == urgent) from.send(wire::Heartbeat{WorkerId{probes_}});
    ++probes_;
  }
  void send(SliceId slice) {
    const auto payload = std::as_bytes(applier_.weights.slice(slice));
    for (const auto& worker : workers_)
      worker->send(transport::Parcel{wire::Pulled{.worker = {}, .step = training, .version = {}, .slice = slice, .bits = 32}, payload,
                                     slice.value, slice.value});
  }
  void heard(transport::Connection&, wire::Message) override {}
  void sent(transport::Connection&, std::uint64_t) override {}
  void closed(transport::Connection&, const Error&) override { io_.stop(); }  // the worker is done; had it failed, it would say so itself

  boost::asio::io_context io_{1};
  std::vector<std::unique_ptr<transport::Connection>> workers_;
  std::vector<std::size_t> arrived_;  // parts, by slice
  std::uint32_t probes_ = 0;
  Applier applier_;
};

/// Pushes every slice and waits for every new one.
class Worker final : private transport::Hears {
 public:
  Worker(WorkerId id, std::uint16_t port, const transport::Options& options) : id_(id) {
    transport::connect(io_, transport::TcpAddress{"127.0.0.1", port}, options, [this](auto connected) {
      server_ = std::move(connected).value();
      server_->start(*this);
    });
    run_until([this] { return server_ != nullptr; });
  }

  void round_trip() {
    back_ = 0;
    for (std::uint32_t i = 0; i < slices; ++i) push({i}, training, i);
    run_until([this] { return back_ == slices; });
  }

  /// How many slices arrive before an urgent one, of those that were not yet with the operating system when it was queued.
  std::uint64_t overtaken_by() {
    sent_ = 0;
    for (std::uint32_t i = 0; i < bulk_slices; ++i) push({i}, probing, 5);
    run_until([this] { return sent_ >= bulk_slices / 4; });
    const std::uint64_t gone = sent_;
    push(urgent, probing, 0);
    run_until([this] { return came_before_.has_value(); });
    return *came_before_ - gone;
  }

 private:
  template <class Condition>
  void run_until(Condition holds) {
    while (!holds()) io_.run_one();
  }
  void push(SliceId slice, Step step, std::uint32_t priority) {
    const auto payload = std::as_bytes(gradient_.slice({slice.value % static_cast<std::uint32_t>(slices)}));
    server_->send(transport::Parcel{wire::Push{.worker = id_, .step = step, .slice = slice, .bits = 32}, payload, priority, slice.value});
  }
  void heard(transport::Connection&, wire::Message message) override { came_before_ = std::get<wire::Heartbeat>(message).worker.value; }
  std::span<std::byte> room(transport::Connection&, const wire::Message& head, std::size_t) override {
    return std::as_writable_bytes(weights_.slice(std::get<wire::Pulled>(head).slice));
  }
  void received(transport::Connection&, const wire::Message&) override { ++back_; }
  void sent(transport::Connection&, std::uint64_t) override { ++sent_; }
  void closed(transport::Connection&, const Error& why) override { throw std::runtime_error(why.message); }

  WorkerId id_;
  boost::asio::io_context io_{1};
  std::unique_ptr<transport::Connection> server_;
  Flat gradient_{0.001F, 0};
  Flat weights_{0.0F, 1};
  std::size_t back_ = 0;
  std::size_t sent_ = 0;
  std::optional<std::uint64_t> came_before_;
};

using Children = std::vector<std::unique_ptr<Child>>;

/// What one round trip took.
struct Trip {
  double seconds = 0;
  double processor_seconds = 0;  // of all processes together
};

/// Processes that make one round trip each time they are told to.
struct Party {
  Children others;  // whom the trips lead to
  Children starters;

  [[nodiscard]] Trip trip() const {
    const double before = processor_seconds();
    const Stopwatch watch;
    for (const auto& starter : starters) starter->say(0);
    for (const auto& starter : starters) static_cast<void>(starter->hear());
    const double seconds = watch.seconds();
    return {seconds, processor_seconds() - before};
  }
  [[nodiscard]] double processor_seconds() const {
    double sum = 0;
    for (const Children* children : {&others, &starters})
      for (const auto& child : *children) sum += child->processor_seconds();
    return sum;
  }
};

Party raw(std::size_t workers, bool at_once) {
  Party party;
  party.starters = raw_pairs(workers, {.piece_bytes = slice_bytes, .pieces = slices, .at_once = at_once}, party.others);
  return party;
}

transport::Options carried_by(transport::Bulk bulk) {
  transport::Options options;
  options.bulk = bulk;
  return options;
}

Party ours(std::size_t workers, transport::Bulk bulk) {
  const transport::Options options = carried_by(bulk);
  Party party;
  party.others.push_back(std::make_unique<Child>([&](const Line& parent) { Server(workers).serve(options, parent); }));
  const auto port = static_cast<std::uint16_t>(party.others[0]->hear());
  for (std::uint32_t i = 0; i < workers; ++i) {
    party.starters.push_back(std::make_unique<Child>([&](const Line& parent) {
      Worker worker({i}, port, options);
      parent.say(0);
      for (;;) {
        static_cast<void>(parent.hear());
        worker.round_trip();
        parent.say(0);
      }
    }));
    static_cast<void>(party.starters.back()->hear());
  }
  return party;
}

/// The same bytes copied there and back by one thread: what no way through memory can beat without a second one.
Party copying() {
  Party party;
  party.starters.push_back(std::make_unique<Child>([](const Line& parent) {
    Flat here(0.001F, 0), there(0.0F, 1);
    for (;;) {
      parent.say(0);
      static_cast<void>(parent.hear());
      std::copy(here.all().begin(), here.all().end(), there.all().begin());
      std::copy(there.all().begin(), there.all().end(), here.all().begin());
    }
  }));
  static_cast<void>(party.starters.back()->hear());
  return party;
}

std::uint64_t urgent_slice_position(transport::Bulk bulk) {
  const transport::Options options = carried_by(bulk);
  const Child server([&](const Line& parent) { Server(1).serve(options, parent); });
  const auto port = static_cast<std::uint16_t>(server.hear());
  const Child worker([&](const Line& parent) { parent.say(Worker({0}, port, options).overtaken_by()); });
  return worker.hear();
}

Trip median(const std::vector<Trip>& trips) {
  const auto of = [&](double Trip::*figure) {
    std::vector<double> sorted;
    for (const Trip& trip : trips) sorted.push_back(trip.*figure);
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  };
  return {of(&Trip::seconds), of(&Trip::processor_seconds)};
}

struct Compared {
  Trip raw;
  Trip copied;
  Trip tcp;
  std::optional<Trip> ucx;
};

/// Turn by turn, so that whatever else the machine does meets all. Bare TCP is given the better of its two ways to make the trip.
Compared compare(std::size_t workers, bool with_ucx) {
  std::vector<Party> parties;
  parties.push_back(raw(workers, false));
  parties.push_back(raw(workers, true));
  parties.push_back(copying());
  parties.push_back(ours(workers, transport::Bulk::tcp));
  if (with_ucx) parties.push_back(ours(workers, transport::Bulk::ucx));
  std::vector<std::vector<Trip>> trips(parties.size());
  for (const Party& party : parties) static_cast<void>(party.trip());  // memory and windows are warm from here on
  for (int i = 0; i < rounds; ++i)
    for (std::size_t p = 0; p < parties.size(); ++p) trips[p].push_back(parties[p].trip());
  const Trip there_then_back = median(trips[0]), at_once = median(trips[1]);
  Compared all{there_then_back.seconds < at_once.seconds ? there_then_back : at_once, median(trips[2]), median(trips[3]), {}};
  if (with_ucx) all.ucx = median(trips[4]);
  return all;
}

boost::json::object figures(bool with_ucx) {
  const double bytes = 2.0 * values * sizeof(float);
  const Compared one = compare(1, with_ucx), four = compare(4, with_ucx);
  boost::json::object all{
      {"round_trip_bytes_per_second", bytes / one.tcp.seconds},
      {"raw_tcp_bytes_per_second", bytes / one.raw.seconds},
      {"ratio_to_raw_tcp", one.raw.seconds / one.tcp.seconds},
      {"round_trip_bytes_per_second_4_workers", 4 * bytes / four.tcp.seconds},
      {"raw_tcp_bytes_per_second_4_workers", 4 * bytes / four.raw.seconds},
      {"ratio_to_raw_tcp_4_workers", four.raw.seconds / four.tcp.seconds},
      // The machine's other work stretches wall time, and ours the more, as more threads must meet; processor time it hardly touches.
      {"processor_ratio_to_raw_tcp", one.raw.processor_seconds / one.tcp.processor_seconds},
      {"processor_ratio_to_raw_tcp_4_workers", four.raw.processor_seconds / four.tcp.processor_seconds},
      {"urgent_slice_position", urgent_slice_position(transport::Bulk::tcp)},
      {"memcpy_bytes_per_second", bytes / one.copied.seconds}};
  if (!with_ucx) return all;
  all["ucx_round_trip_bytes_per_second"] = bytes / one.ucx->seconds;
  all["ucx_ratio_to_raw_tcp"] = one.raw.seconds / one.ucx->seconds;
  all["ucx_ratio_to_memcpy"] = one.copied.seconds / one.ucx->seconds;
  all["ucx_round_trip_bytes_per_second_4_workers"] = 4 * bytes / four.ucx->seconds;
  all["ucx_ratio_to_raw_tcp_4_workers"] = four.raw.seconds / four.ucx->seconds;
  all["ucx_processor_ratio_to_raw_tcp"] = one.raw.processor_seconds / one.ucx->processor_seconds;
  all["ucx_processor_ratio_to_raw_tcp_4_workers"] = four.raw.processor_seconds / four.ucx->processor_seconds;
  all["ucx_urgent_slice_position"] = urgent_slice_position(transport::Bulk::ucx);
  return all;
}

}  // namespace

boost::json::object bench_transport() { return figures(transport::has_segments()); }
boost::json::object bench_transport_tcp() { return figures(false); }

}  // namespace motley::app
