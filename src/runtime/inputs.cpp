#include "runtime/inputs.h"

#include <fmt/format.h>

#include "base/match.h"
#include "wire/encode.h"
#include "wire/frame.h"

namespace motley::runtime {
namespace {

enum class Input : std::uint8_t { received, lost, lost_pending, tick, interrupted, closed, driver_paused, model_not_finite };

using protocol::Role;

void put_frame(wire::Appender& out, const wire::Message& message) { wire::append(message, out.out); }

void put(wire::Appender& out, const protocol::ChiefAction& action) {
  out.put(action.index(), 1);
  const auto put_all = [&](const auto&... values) { (wire::write(out, values), ...); };
  const auto put_note = [&](const policy::Note& note) {
    put_all(static_cast<std::uint8_t>(note.index()));
    std::visit(match{[&](const policy::StateNow& n) { put_all(static_cast<std::uint8_t>(n.state), n.gap, n.threshold, n.stragglers); },
                     [&](const policy::Straggles& n) { put_all(n.worker, n.now, static_cast<std::uint8_t>(n.why), n.times); },
                     [&](const policy::InGroup& n) { put_all(n.worker, n.group, n.groups); }},
               note);
  };
  std::visit(
      match{[&](const protocol::Send& a) {
              put_all(static_cast<std::uint8_t>(a.to.role), a.to.id);
              put_frame(out, a.message);
            },
            [&](const protocol::Joined& a) { put_all(a.worker, a.node); }, [&](const protocol::Left& a) { put_all(a.worker, a.why); },
            [&](const protocol::Completed& a) { put_all(a.worker, a.step, a.base, a.samples, a.loss, a.pull); },
            [&](const protocol::Returned& a) { put_all(a.worker, a.step, a.lease); },
            [&](const protocol::Counted& a) { put_all(a.worker, a.step, a.version, a.samples, a.staleness, a.weight); },
            [&](const protocol::Released& a) {
              put_all(a.worker, a.step, a.version, static_cast<std::uint8_t>(a.why), a.bits.push, a.bits.pull);
            },
            [&](const protocol::Held& a) { put_all(a.worker, static_cast<std::uint8_t>(a.why), a.gap); },
            [&](const protocol::Dropped& a) { put_all(a.worker, a.step, static_cast<std::uint8_t>(a.why)); },
            [&](const protocol::Cancelled& a) { put_all(a.worker, a.step, static_cast<std::uint8_t>(a.why)); },
            [&](const protocol::Discarded& a) { put_all(a.worker, a.step, static_cast<std::uint8_t>(a.why)); },
            [&](const protocol::Noted& a) { put_note(a.note); }, [&](const protocol::WakeAt& a) { put_all(a.when - Instant{}); },
            [&](const protocol::Idled& a) { put_all(a.worker); }, [&](const protocol::Evaluate& a) { put_all(a.version, a.samples); },
            [&](const protocol::Checkpoint& a) {
              put_all(a.state.version, a.state.next_evaluation, a.state.evaluated, a.state.next_worker, a.state.trained);
              for (const auto& [name, value] : a.state.strategy) {
                wire::write(out, name);
                std::visit([&](auto saved) { wire::write(out, saved); }, value);
              }
              for (const auto& [first, last] : a.state.counted) put_all(first, last);
            },
            [&](const protocol::Finished& a) { put_all(a.why); },
            [&](const protocol::ServerStuck& a) { put_all(a.server, a.for_how_long); }},
      action);
}

}  // namespace

std::uint64_t fingerprint(const protocol::ChiefActions& actions) {
  wire::Bytes bytes;
  wire::Appender out{bytes};
  for (const protocol::ChiefAction& action : actions) put(out, action);
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const std::byte b : bytes) hash = (hash ^ std::to_integer<std::uint64_t>(b)) * 0x100000001b3;
  return hash;
}

void Recorder::stepped(Instant now, const protocol::ChiefEvent& event, const protocol::ChiefActions& actions) {
  record_.clear();
  wire::Appender out{record_};
  const auto begin = [&](Input kind) {
    wire::write(out, static_cast<std::uint8_t>(kind));
    wire::write(out, now.time_since_epoch());
  };
  std::visit(match{[&](const protocol::Received& e) {
                     begin(Input::received);
                     wire::write(out, static_cast<std::uint8_t>(e.from.role));
                     wire::write(out, e.from.id);
                     put_frame(out, e.message);
                   },
                   [&](const protocol::Lost& e) {
                     begin(Input::lost);
                     wire::write(out, e.worker);
                   },
                   [&](const protocol::LostPending& e) {
                     begin(Input::lost_pending);
                     wire::write(out, e.connection);
                   },
                   [&](const protocol::Tick&) { begin(Input::tick); }, [&](const protocol::Interrupted&) { begin(Input::interrupted); },
                   [&](const protocol::DriverPaused& e) {
                     begin(Input::driver_paused);
                     wire::write(out, e.time);
                   },
                   [&](const protocol::ModelNotFinite&) { begin(Input::model_not_finite); }},
             event);
  wire::write(out, fingerprint(actions));
  sink_(record_);
}

void Recorder::closed(Instant now) {
  record_.clear();
  wire::Appender out{record_};
  wire::write(out, static_cast<std::uint8_t>(Input::closed));
  wire::write(out, now.time_since_epoch());
  sink_(record_);
}

namespace {

struct Record {
  Instant now;
  std::optional<protocol::ChiefEvent> event;  // none: closed
  std::uint64_t answers{};
};

/// Nothing: the bytes end within the record.
Result<std::optional<Record>> read_record(std::span<const std::byte>& bytes, std::uint64_t number) {
  using Answer = std::optional<Record>;
  const auto broken = [&](const std::string& what) { return bad_input(fmt::format("input {}: {}", number, what)); };
  wire::Reader in(bytes);
  std::uint8_t kind = 0;
  Duration now{};
  if (!wire::read(in, kind) || !wire::read(in, now)) return Answer{};
  if (now < Duration{0} || now > protocol::longest_training)
    return broken(fmt::format("found the time {} ns, expected 0 to {}", now.count(), protocol::longest_training.count()));
  Record record{Instant{now}, protocol::Tick{}, 0};
  switch (Input{kind}) {
    case Input::received: {
      std::uint8_t role = 0;
      std::uint32_t id = 0;
      if (!wire::read(in, role) || !wire::read(in, id)) return Answer{};
      if (role > static_cast<std::uint8_t>(Role::pending)) return broken(fmt::format("found role {}, expected at most 3", role));
      const auto frame = bytes.last(in.left());
      const auto parsed = wire::parse(frame);
      if (!parsed) return broken(parsed.error().message);
      const auto* complete = std::get_if<wire::Complete>(&*parsed);
      if (complete == nullptr) return Answer{};
      record.event = protocol::Received{{Role{role}, id}, complete->message};
      in = wire::Reader(frame.subspan(complete->bytes));
      break;
    }
    case Input::lost: {
      WorkerId worker;
      if (!wire::read(in, worker)) return Answer{};
      record.event = protocol::Lost{worker};
      break;
    }
    case Input::lost_pending: {
      std::uint32_t connection = 0;
      if (!wire::read(in, connection)) return Answer{};
      record.event = protocol::LostPending{connection};
      break;
    }
    case Input::tick: break;
    case Input::interrupted: record.event = protocol::Interrupted{}; break;
    case Input::closed:
      if (in.left() > 0) return broken(fmt::format("found {} bytes behind the end of the recording, expected none", in.left()));
      record.event.reset();
      bytes = {};
      return Answer{std::move(record)};
    case Input::driver_paused: {
      Duration time{};
      if (!wire::read(in, time)) return Answer{};
      if (time < Duration{0} || time > protocol::longest_training)
        return broken(fmt::format("found {} ns unattended, expected 0 to {}", time.count(), protocol::longest_training.count()));
      record.event = protocol::DriverPaused{time};
      break;
    }
    case Input::model_not_finite: record.event = protocol::ModelNotFinite{}; break;
    default: return broken(fmt::format("found kind {}, expected 0 to 7", kind));
  }
  if (!wire::read(in, record.answers)) return Answer{};
  bytes = bytes.last(in.left());
  return Answer{std::move(record)};
}

}  // namespace

Replayed replay(std::span<const std::byte> records, protocol::Chief& chief) {
  Replayed replayed;
  protocol::ChiefActions actions;
  const auto torn = [&](std::string why, bool damaged) {
    replayed.torn = std::move(why);
    replayed.damaged = damaged;
    return replayed;
  };
  while (!records.empty()) {
    auto record = read_record(records, replayed.inputs);
    if (!record) return torn(record.error().message, true);
    if (!*record)
      return torn(
          fmt::format("it ends within a record ({} bytes of it), as when its process was killed or could not write", records.size()),
          false);
    if (!(*record)->event) return replayed;
    actions.clear();
    chief.step((*record)->now, *(*record)->event, actions);
    if (fingerprint(actions) != (*record)->answers && !replayed.first_difference) replayed.first_difference = replayed.inputs;
    ++replayed.inputs;
  }
  return torn("it ends without saying so, as when its process was killed or could not write", false);
}

}  // namespace motley::runtime
