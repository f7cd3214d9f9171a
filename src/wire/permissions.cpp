#include "wire/permissions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/mp11.hpp>
#include <cmath>
#include <concepts>

#include "base/check.h"
#include "wire/encode.h"
#include "wire/frame.h"

namespace motley::wire {
namespace {

/// A set of kinds of messages: bit k for the k-th of Message.
using Kinds = std::uint64_t;
static_assert(std::variant_size_v<Message> <= 64, "a set of kinds fits into one word");

template <class... T>
constexpr Kinds set_of() {
  return (Kinds{0} | ... | (Kinds{1} << boost::mp11::mp_find<Message, T>::value));
}

struct Permission {
  Sender sender;
  std::string_view name;  // of the sender, for the reason
  Kinds control;
  Kinds bulk;
};

// The table. A kind that is in no row of a sender is refused from it.
constexpr std::array<Permission, 10> permissions{{
    {Sender::unidentified, "an unidentified process", set_of<JoinRequest>(), 0},
    {Sender::worker, "a worker", set_of<Hello, Attach, Began, Contributed, Heartbeat, Leaving>(), set_of<Push>()},
    {Sender::server, "a server", set_of<Echo, ServerHello, SlicePlacement, Gathered, AlignmentResult, Probe>(), set_of<StateChunk>()},
    {Sender::servers_worker, "a worker to a server", set_of<JoinRequest, Attach, Heartbeat>(), set_of<Push>()},
    {Sender::servers_chief, "a chief to a server",
     set_of<JobDescription, Echo, SlicePlacement, StateEnd, Admitted, Apply, Discard, Release, AlignmentTest, Export, Forget, Probe,
            Stop>(),
     set_of<StateChunk>()},
    {Sender::workers_chief, "a chief to a worker", set_of<JobDescription, Welcome, Order, Fenced, Cancel, Stop>(), set_of<Pulled>()},
    {Sender::workers_server, "a server to a worker", 0, set_of<Pulled>()},
    {Sender::stage, "a stage", set_of<StageHello, StageAssigned, Committed, PeerLost, StageStatus, Heartbeat>(), set_of<StageSlice>()},
    {Sender::stages_chief, "a chief to a stage", set_of<JobDescription, StageHello, AssignStage, Allow, Stop>(), set_of<StageSlice>()},
    {Sender::neighbour, "a neighbour stage", set_of<PeerHello>(), set_of<ActivationSlice>()},
}};

const Permission& permission_of(Sender sender) {
  const auto found = std::find_if(permissions.begin(), permissions.end(), [&](const Permission& row) { return row.sender == sender; });
  check(found != permissions.end(), "every sender has a row");
  return *found;
}

// Values ---------------------------------------------------------------------------------------------------------------------------------

constexpr Duration longest = std::chrono::hours(24 * 365 * 100);
constexpr std::size_t longest_address = 256;
constexpr std::uint64_t largest_count = std::uint64_t{1}
                                        << 48U;  // of versions, steps, mini-batches, values: far below the overflow of sums

bool is_printable(char c) { return c >= ' ' && c <= '~'; }

/// Two-byte control characters of UTF-8, which some terminals interpret.
bool has_wide_controls(std::string_view text) {
  for (std::size_t at = text.find('\xc2'); at != std::string_view::npos; at = text.find('\xc2', at + 1))
    if (at + 1 < text.size() && static_cast<unsigned char>(text[at + 1]) < 0xa0) return true;
  return false;
}

/// Texts by the names of their members. Other texts are sentences, which are escaped when they are printed.
Objection text(std::string_view member, std::string_view value) {
  if (member == "node" && !is_name(value))
    return fmt::format("found \"{}\", expected at most {} printable ASCII characters", printable(value, longest_name), longest_name);
  const bool address = member == "address" || member == "next" || member == "servers";
  if (address && (value.size() > longest_address || !std::all_of(value.begin(), value.end(), is_printable)))
    return fmt::format("found \"{}\", expected an address of at most {} printable characters", printable(value, 64), longest_address);
  const auto in_job = [](char c) { return is_printable(c) || c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x80; };
  if (member == "job" && (!std::all_of(value.begin(), value.end(), in_job) || has_wide_controls(value)))
    return "found control characters, expected a job's text";
  return {};
}

/// These become NaN when a model diverges, which the state machines handle.
bool may_be_nan(std::string_view member) {
  constexpr std::array<std::string_view, 5> diverging{"loss_sum", "squared_norm", "residual", "update_norm", "alignment"};
  return std::find(diverging.begin(), diverging.end(), member) != diverging.end();
}

template <class T>
Objection values_of(std::string_view member, const T& x) {
  if constexpr (std::is_enum_v<T>) {
    bool known = false;
    boost::mp11::mp_for_each<boost::describe::describe_enumerators<T>>([&](auto described) { known = known || described.value == x; });
    if (!known) return fmt::format("{} is not one of its values", static_cast<int>(x));
  } else if constexpr (std::same_as<T, double>) {
    if (!std::isfinite(x) && !may_be_nan(member)) return fmt::format("found {}, expected a number", x);
  } else if constexpr (std::same_as<T, std::uint64_t>) {
    if (x > largest_count && !member.ends_with("key")) return fmt::format("found {}, expected at most {}", x, largest_count);
  } else if constexpr (std::integral<T>) {
    return {};
  } else if constexpr (is_named_number<T>) {
    return values_of(member, x.value);
  } else if constexpr (std::same_as<T, Duration>) {
    if (x < Duration{0} || x > longest) return fmt::format("found {} s, expected 0 to {:.0f}", seconds(x), seconds(longest));
  } else if constexpr (std::same_as<T, std::string>) {
    return text(member, x);
  } else if constexpr (List<T>) {
    for (const auto& item : x)
      if (auto why = values_of(member, item)) return why;
  } else {
    Objection first;
    boost::mp11::mp_for_each<Members<T>>([&](auto described) {
      if (first) return;
      if (auto why = values_of(described.name, x.*described.pointer))
        first = member.empty() ? fmt::format("{}: {}", described.name, *why) : fmt::format("{}.{}", described.name, *why);
    });
    return first;
  }
  return {};
}

// The fields of one message in combination -----------------------------------------------------------------------------------------

Objection expects(bool holds, std::string_view sentence) { return holds ? Objection{} : Objection{fmt::format("expected {}", sentence)}; }

template <class T>
Objection together(const T&) {
  return {};
}
Objection together(const Hello& hello) {
  const cluster::DeviceProfile& profile = hello.profile;
  return expects(profile.batch_multiple <= 1U << 16U && profile.cost.fixed >= 0 && profile.cost.per_sample >= 0 &&
                     (profile.transfer_s_per_byte >= 0 || profile.transfer_s_per_byte == cluster::not_measured) &&
                     (profile.bytes_per_value == 2 || profile.bytes_per_value == 4),
                 "a batch multiple of at most 65536, costs of at least 0, and 2 or 4 bytes per value");
}
Objection together(const Order& order) {
  return expects(order.micro >= 1 && order.local_steps >= 1 && !order.lease.empty() && order.parameters <= order.step,
                 "one local step, one sample between looks at the clock, a lease, and parameters of a step up to its own");
}
Objection together(const ServerHello& hello) {
  return expects(hello.round_trip <= std::chrono::hours(1), "a round trip of at most an hour");
}
Objection together(const Apply& update) {
  return expects(!update.parts.empty() && update.version.value > 0, "parts, and a version above 0");
}
Objection together(const Committed& reported) {
  const bool good = std::all_of(reported.parts.begin(), reported.parts.end(),
                                [](const PartRecord& did) { return did.part < 3 && did.began <= did.ended; });
  return expects(good, "parts 0, 1 and 2 that begin before they end");
}
Objection together(const AssignStage& assigned) {
  const std::size_t stages = assigned.sections.size();
  const auto holds = [](std::uint32_t held) { return held >= 1; };
  const auto takes = [](double part_s) { return part_s >= 0; };
  return expects(assigned.stage < stages && assigned.schedule.max_in_flight.size() == stages &&
                     std::all_of(assigned.schedule.max_in_flight.begin(), assigned.schedule.max_in_flight.end(), holds) &&
                     assigned.parts_s.size() == 3 && std::all_of(assigned.parts_s.begin(), assigned.parts_s.end(), takes) &&
                     assigned.schedule.micro_batches >= 1 && assigned.from <= assigned.allowed && assigned.kept_bytes >= 0 &&
                     assigned.kept_bytes < 1e15 && assigned.next.empty() == (assigned.stage + 1 == stages),
                 "a pipeline with this stage in it, and where the next one listens");
}
Objection together(const ActivationSlice& slice) {
  std::uint64_t values = 1;
  for (const std::int64_t extent : slice.shape) {
    if (extent <= 0 || static_cast<std::uint64_t>(extent) > (std::uint64_t{1} << 32U) / values)
      return "expected a shape of at most 2^32 values";
    values *= static_cast<std::uint64_t>(extent);
  }
  return expects(!slice.shape.empty() && slice.offset < values, "a shape, and an offset within it");
}

}  // namespace

Objection objection_to_values(const Message& message) {
  return std::visit(
      [&]<class T>(const T& one) -> Objection {
        Objection why = values_of("", one);
        if (!why) why = together(one);
        if (!why) return {};
        return fmt::format("a {} that no correct peer sends: {}", name_of(message), *why);
      },
      message);
}

bool permits(Sender sender, Lane lane, std::size_t kind) {
  const Permission& row = permission_of(sender);
  return ((lane == Lane::control ? row.control : row.bulk) >> kind & 1U) != 0;
}

std::string_view name_of(Sender sender) { return permission_of(sender).name; }

Objection objection(Sender sender, Lane lane, const Message& message) {
  if (!permits(sender, lane, message.index()))
    return fmt::format("{} never sends a {} on the {} lane", name_of(sender), name_of(message), lane == Lane::control ? "control" : "bulk");
  return objection_to_values(message);
}

std::uint64_t values_of(const std::vector<std::int64_t>& shape) {
  std::uint64_t values = 1;
  for (const std::int64_t extent : shape) values *= static_cast<std::uint64_t>(extent);
  return values;
}

bool is_name(std::string_view text) { return text.size() <= longest_name && std::all_of(text.begin(), text.end(), is_printable); }

std::string printable(std::string_view text, std::size_t most) {
  std::string out;
  for (const char c : text.substr(0, most))
    out += is_printable(c) ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return text.size() > most ? out + "..." : out;
}

}  // namespace motley::wire
