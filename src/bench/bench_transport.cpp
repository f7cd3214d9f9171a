// Cost of the transport, compared with bare TCP and memcpy: every gradient is pushed, applied and pulled back, over loopback TCP and
// through shared memory, between separate processes.
#include <algorithm>
#include <array>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <ctime>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/crc32c.h"
#include "bench/bench.h"
#include "bench/bench_transport_applier.h"
#include "bench/bench_transport_child.h"
#include "bench/bench_transport_raw.h"
#include "runtime/stopwatch.h"
#include "runtime/temporary_folder.h"
#include "transport/acceptor.h"
#include "transport/connect.h"
#include "transport/segment.h"
#include "transport/shared_arena.h"

namespace motley::bench {
namespace {

constexpr int rounds = 9;
constexpr Step training{0}, probing{1};
constexpr SliceId urgent{9999};
constexpr std::size_t bulk_slices = 64;

/// Receives pushes into place, or reads them in place, and sends each new slice to all workers as soon as it is applied.
class Server final : private transport::AcceptCallbacks, private transport::ConnectionCallbacks {
 public:
  explicit Server(std::size_t workers)
      : arrived_(slices), applier_(workers, [this](SliceId slice) { boost::asio::post(io_, [this, slice] { send(slice); }); }) {}

  void serve(const transport::Address& address, const transport::Options& options, const NumberPipe& parent) {
    const auto acceptor = transport::listen(io_, address, options, *this);
    const auto* tcp = std::get_if<transport::TcpAddress>(&(*acceptor)->address());
    parent.send(tcp != nullptr ? tcp->port : 0);
    io_.run();
  }

 private:
  void accepted(std::unique_ptr<transport::Connection> connection) override {
    workers_.push_back(std::move(connection));
    workers_.back()->start(*this);
  }
  void refused(const std::string&, const std::string& reason) override { throw std::runtime_error(reason); }

  std::span<std::byte> receive_buffer(transport::Connection&, const wire::Message& head, std::size_t) override {
    const auto& push = std::get<wire::Push>(head);
    if (push.step == probing) return std::as_writable_bytes(applier_.gradients[0]->slice({0}));
    return std::as_writable_bytes(applier_.gradients[push.worker.value]->slice(push.slice));
  }
  bool accept_in_place(transport::Connection&, const wire::Message& head, std::span<const std::byte> payload,
                       const transport::BorrowedMemory& borrow) override {
    const auto& push = std::get<wire::Push>(head);
    applier_.parts[push.slice.value][push.worker.value] = reinterpret_cast<const float*>(payload.data());
    borrows_[push.slice.value].push_back(borrow);
    count(push.slice);
    return true;
  }
  void received(transport::Connection& from, const wire::Message& head) override {
    const auto& push = std::get<wire::Push>(head);
    if (push.step == probing) return probe(from, push);
    count(push.slice);
  }
  void count(SliceId slice) {
    if (++arrived_[slice.value] < applier_.gradients.size()) return;
    arrived_[slice.value] = 0;
    applier_.give(slice);
  }
  /// Answers an urgent slice with the number of slices that came before it.
  void probe(transport::Connection& from, const wire::Push& push) {
    if (push.slice == urgent) from.send(wire::Heartbeat{WorkerId{probes_}});
    ++probes_;
  }
  void send(SliceId slice) {
    borrows_[slice.value].clear();
    const auto payload = std::as_bytes(applier_.weights.slice(slice));
    for (const auto& worker : workers_)
      worker->send(transport::BulkMessage{wire::Pulled{.worker = {}, .step = training, .version = {}, .slice = slice, .bits = 32}, payload,
                                          slice.value, slice.value, /*may_borrow=*/true});
  }
  void on_message(transport::Connection&, wire::Message) override {}
  void sent(transport::Connection&, std::uint64_t) override {}
  void closed(transport::Connection&, const Error&) override {
    io_.stop();
  }  // the worker has finished; a failed one reports its error itself

  boost::asio::io_context io_{1};
  std::vector<std::unique_ptr<transport::Connection>> workers_;
  std::vector<std::size_t> arrived_;                                    // parts received, by slice
  std::array<std::vector<transport::BorrowedMemory>, slices> borrows_;  // of slices that are being applied
  std::uint32_t probes_ = 0;
  Applier applier_;
};

/// Pushes every slice and waits for every new one.
class Worker final : private transport::ConnectionCallbacks {
 public:
  Worker(WorkerId id, const transport::Address& address, const transport::Options& options, bool shareable = false)
      : id_(id), shareable_(shareable) {
    transport::connect(io_, address, options, [this](auto connected) {
      server_ = std::move(connected).value();
      server_->start(*this);
    });
    run_until([this] { return server_ != nullptr; });
  }

  void round_trip() {
    back_ = 0;
    borrows_.clear();
    for (std::uint32_t i = 0; i < slices; ++i) push({i}, training, i);
    run_until([this] { return back_ == slices; });
  }

  /// The number of slices that arrive before an urgent one, among those that were not yet with the operating system when it was queued.
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
    server_->send(transport::BulkMessage{wire::Push{.worker = id_, .step = step, .slice = slice, .bits = 32}, payload, priority,
                                         slice.value,
                                         /*may_borrow=*/shareable_ && step == training});
  }
  void on_message(transport::Connection&, wire::Message message) override {
    came_before_ = std::get<wire::Heartbeat>(message).worker.value;
  }
  std::span<std::byte> receive_buffer(transport::Connection&, const wire::Message& head, std::size_t) override {
    return std::as_writable_bytes(weights_.slice(std::get<wire::Pulled>(head).slice));
  }
  void received(transport::Connection&, const wire::Message&) override { ++back_; }
  /// As a worker's device: values are used in place. In this benchmark they are released when the next round begins.
  bool accept_in_place(transport::Connection&, const wire::Message&, std::span<const std::byte>,
                       const transport::BorrowedMemory& borrow) override {
    if (!shareable_) return false;
    borrows_.push_back(borrow);
    ++back_;
    return true;
  }
  void sent(transport::Connection&, std::uint64_t) override { ++sent_; }
  void closed(transport::Connection&, const Error& why) override { throw std::runtime_error(why.message); }

  WorkerId id_;
  bool shareable_;
  boost::asio::io_context io_{1};
  std::unique_ptr<transport::Connection> server_;
  std::vector<transport::BorrowedMemory> borrows_;
  Flat gradient_{0.001F, 0};
  Flat weights_{0.0F, 1};
  std::size_t back_ = 0;
  std::size_t sent_ = 0;
  std::optional<std::uint64_t> came_before_;
};

using Children = std::vector<std::unique_ptr<Child>>;

/// Durations of one round trip.
struct Trip {
  double seconds = 0;
  double processor_seconds = 0;  // of all processes together
};

/// Processes that make one round trip whenever they are asked to.
struct Party {
  Children others;  // the peers of the trips
  Children starters;

  [[nodiscard]] Trip trip() const {
    const double before = processor_seconds();
    const runtime::Stopwatch watch;
    for (const auto& starter : starters) starter->send(0);
    for (const auto& starter : starters) static_cast<void>(starter->receive());
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

/// The address of a benchmark's server: shared memory needs a unix socket.
class Meeting {
 public:
  explicit Meeting(transport::Bulk bulk) {
    if (bulk != transport::Bulk::shared) return;
    auto folder = runtime::TemporaryFolder::make("motley", "a socket");
    if (!folder.ok()) throw std::runtime_error(folder.error().message);
    folder_ = std::move(*folder);
    address_ = transport::UnixAddress{(folder_.path() / "server").string()};
  }
  [[nodiscard]] const transport::Address& address() const { return address_; }
  /// Receives the server's port, if it has one.
  void opened(const Child& server) {
    const std::uint64_t port = server.receive();
    if (auto* tcp = std::get_if<transport::TcpAddress>(&address_)) tcp->port = static_cast<std::uint16_t>(port);
  }

 private:
  runtime::TemporaryFolder folder_;
  transport::Address address_ = transport::TcpAddress{"127.0.0.1", 0};
};

Party ours(std::size_t workers, transport::Bulk bulk, bool shareable = false) {
  const transport::Options options = carried_by(bulk);
  Meeting meeting(bulk);
  Party party;
  party.others.push_back(std::make_unique<Child>([&](const NumberPipe& parent) {
    if (shareable) transport::shared_arena().want();
    Server(workers).serve(meeting.address(), options, parent);
  }));
  meeting.opened(*party.others[0]);
  for (std::uint32_t i = 0; i < workers; ++i) {
    party.starters.push_back(std::make_unique<Child>([&](const NumberPipe& parent) {
      if (shareable) transport::shared_arena().want();
      Worker worker({i}, meeting.address(), options, shareable);
      parent.send(0);
      for (;;) {
        static_cast<void>(parent.receive());
        worker.round_trip();
        parent.send(0);
      }
    }));
    static_cast<void>(party.starters.back()->receive());
  }
  return party;
}

/// The same bytes copied there and back by one thread: a limit for every transport through memory that uses one thread.
Party copying() {
  Party party;
  party.starters.push_back(std::make_unique<Child>([](const NumberPipe& parent) {
    Flat here(0.001F, 0), there(0.0F, 1);
    for (;;) {
      parent.send(0);
      static_cast<void>(parent.receive());
      std::copy(here.all().begin(), here.all().end(), there.all().begin());
      std::copy(there.all().begin(), there.all().end(), here.all().begin());
    }
  }));
  static_cast<void>(party.starters.back()->receive());
  return party;
}

/// In processor time, of slices in memory, as those of a large model. The result is sent to the parent, so that the compiler cannot drop
/// the computation.
double checksum_bytes_per_second() {
  Flat flat(0.001F, 0);
  std::vector<double> times;
  std::uint32_t recorded = 0;
  for (int i = 0; i < rounds; ++i) {
    const std::clock_t begin = std::clock();
    for (std::uint32_t s = 0; s < slices; ++s) recorded = crc32c(std::as_bytes(flat.slice({s})), recorded);
    times.push_back(static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC);
  }
  std::sort(times.begin(), times.end());
  return recorded == 0 ? 0 : static_cast<double>(values * sizeof(float)) / times[times.size() / 2];
}

std::uint64_t urgent_slice_position(transport::Bulk bulk) {
  const transport::Options options = carried_by(bulk);
  Meeting meeting(bulk);
  const Child server([&](const NumberPipe& parent) { Server(1).serve(meeting.address(), options, parent); });
  meeting.opened(server);
  const Child worker([&](const NumberPipe& parent) { parent.send(Worker({0}, meeting.address(), options).overtaken_by()); });
  return worker.receive();
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
  std::optional<Trip> shared;                 // every slice read in place
  std::optional<Trip> copied_through_memory;  // every slice copied through a ring
};

/// Alternates all variants, so that other load affects all alike. Bare TCP counts with the better of its two variants.
Compared compare(std::size_t workers, bool with_memory) {
  std::vector<Party> parties;
  parties.push_back(raw(workers, false));
  parties.push_back(raw(workers, true));
  parties.push_back(copying());
  parties.push_back(ours(workers, transport::Bulk::tcp));
  if (with_memory) {
    parties.push_back(ours(workers, transport::Bulk::shared, /*shareable=*/true));
    parties.push_back(ours(workers, transport::Bulk::shared));
  }
  std::vector<std::vector<Trip>> trips(parties.size());
  for (const Party& party : parties) static_cast<void>(party.trip());  // warms memory and windows
  for (int i = 0; i < rounds; ++i)
    for (std::size_t p = 0; p < parties.size(); ++p) trips[p].push_back(parties[p].trip());
  const Trip there_then_back = median(trips[0]), at_once = median(trips[1]);
  Compared all{there_then_back.seconds < at_once.seconds ? there_then_back : at_once, median(trips[2]), median(trips[3]), {}, {}};
  if (with_memory) {
    all.shared = median(trips[4]);
    all.copied_through_memory = median(trips[5]);
  }
  return all;
}

boost::json::object figures(bool with_memory) {
  const double bytes = 2.0 * values * sizeof(float);
  const Compared one = compare(1, with_memory), four = compare(4, with_memory);
  const double checksum = checksum_bytes_per_second();
  boost::json::object all{{"round_trip_bytes_per_second", bytes / one.tcp.seconds},
                          {"raw_tcp_bytes_per_second", bytes / one.raw.seconds},
                          {"ratio_to_raw_tcp", one.raw.seconds / one.tcp.seconds},
                          {"round_trip_bytes_per_second_4_workers", 4 * bytes / four.tcp.seconds},
                          {"raw_tcp_bytes_per_second_4_workers", 4 * bytes / four.raw.seconds},
                          {"ratio_to_raw_tcp_4_workers", four.raw.seconds / four.tcp.seconds},
                          // Other load stretches wall time, more so for more threads; processor time is hardly affected.
                          {"processor_ratio_to_raw_tcp", one.raw.processor_seconds / one.tcp.processor_seconds},
                          {"processor_ratio_to_raw_tcp_4_workers", four.raw.processor_seconds / four.tcp.processor_seconds},
                          {"urgent_slice_position", urgent_slice_position(transport::Bulk::tcp)},
                          {"memcpy_bytes_per_second", bytes / one.copied.seconds},
                          // Two checksums are computed per transferred byte.
                          {"checksum_bytes_per_second", checksum},
                          {"checksum_share_of_processor_time", 2 * bytes / checksum / one.tcp.processor_seconds}};
  if (!with_memory) return all;
  all["shared_round_trip_bytes_per_second"] = bytes / one.shared->seconds;
  all["shared_ratio_to_raw_tcp"] = one.raw.seconds / one.shared->seconds;
  all["shared_ratio_to_memcpy"] = one.copied.seconds / one.shared->seconds;
  all["shared_copied_ratio_to_raw_tcp"] = one.raw.seconds / one.copied_through_memory->seconds;
  all["shared_copied_ratio_to_memcpy"] = one.copied.seconds / one.copied_through_memory->seconds;
  all["shared_round_trip_bytes_per_second_4_workers"] = 4 * bytes / four.shared->seconds;
  all["shared_ratio_to_raw_tcp_4_workers"] = four.raw.seconds / four.shared->seconds;
  all["shared_processor_ratio_to_raw_tcp"] = one.raw.processor_seconds / one.shared->processor_seconds;
  all["shared_processor_ratio_to_raw_tcp_4_workers"] = four.raw.processor_seconds / four.shared->processor_seconds;
  all["shared_urgent_slice_position"] = urgent_slice_position(transport::Bulk::shared);
  return all;
}

}  // namespace

boost::json::object bench_transport() { return figures(transport::has_segments()); }
boost::json::object bench_transport_tcp() { return figures(false); }

}  // namespace motley::bench
