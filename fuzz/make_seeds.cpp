// Generates the seeds of the fuzz targets: one of every message, framed and bare, and the frames of the lanes.
// usage: build-fuzz/fuzz/make_seeds fuzz/seeds, again when messages change (scripts/fuzz.sh builds it).
#include <boost/mp11.hpp>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "transport/bulk_frame.h"
#include "transport/control_frame.h"
#include "wire/encode.h"
#include "wire/frame.h"

using namespace motley;  // NOLINT(google-build-using-namespace): a program of few functions
using namespace std::string_view_literals;

namespace {

/// Increasing numbers and lists of two, so that all fields differ.
template <class T>
void fill(T& x, std::uint8_t& n) {
  if constexpr (std::is_enum_v<T>) {
    x = T{};
  } else if constexpr (std::same_as<T, bool>) {
    x = true;
  } else if constexpr (std::is_arithmetic_v<T>) {
    x = static_cast<T>(++n);
  } else if constexpr (wire::is_named_number<T>) {
    x.value = ++n;
  } else if constexpr (std::same_as<T, Duration>) {
    x = Duration{++n};
  } else if constexpr (std::same_as<T, std::string>) {
    x = "node";
  } else if constexpr (wire::List<T>) {
    x.resize(2);
    for (auto& item : x) fill(item, n);
  } else {
    boost::mp11::mp_for_each<wire::Members<T>>([&](auto member) { fill(x.*member.pointer, n); });
  }
}

void save(const std::filesystem::path& file, std::span<const std::byte> bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
}

template <class T>
void message_seeds(const std::filesystem::path& to) {
  std::uint8_t n = 0;
  T filled{};
  fill(filled, n);
  const wire::Message message = filled;
  const std::string name(wire::name_of(message));
  wire::Bytes frame, bare, control;
  wire::append(message, frame);
  save(to / "frame" / name, frame);
  wire::Appender{bare}.put(message.index(), 1);
  wire::Appender appender{bare};
  wire::write(appender, filled);
  save(to / "message" / name, bare);
  transport::append_message(message, control);
  save(to / "control_frame" / name, control);
  wire::Bytes bulk = frame;
  wire::Appender{bulk}.put(5, 4);           // bytes of payload
  wire::Appender{bulk}.put(0x12345678, 4);  // its checksum
  if (transport::parse_announcement(bulk, 5).ok()) save(to / "bulk_frame" / name, bulk);
}

void lane_seeds(const std::filesystem::path& to) {
  wire::Bytes credit, goodbye, several;
  transport::append_credit(65536, credit);
  save(to / "control_frame" / "credit", credit);
  transport::append_goodbye("the run is over", goodbye);
  save(to / "control_frame" / "goodbye", goodbye);
  transport::append_credit(1, several);
  transport::append_message(wire::Stop{}, several);
  transport::append_goodbye("", several);
  save(to / "control_frame" / "several", several);
}

void job_seeds(const std::filesystem::path& to) {
  save(to / "job" / "short", std::as_bytes(std::span("[[cluster.node]]\ncount = 4\nsamples_per_second = 250\n"sv)));
  save(to / "job" / "overrides",
       std::as_bytes(std::span("[model]\nkind = \"none\"\nvalues = 100\n[[cluster.node]]\nname = \"a\"\nsamples_per_second = 250\n"
                               "[[cluster.fault]]\nat = 2\nkind = \"kill\"\nnode = \"a\"\n\0cluster.node.a.jitter=0.5\0ssp:bound=2"sv)));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: make_seeds FOLDER\n", stderr), 2;
  const std::filesystem::path to = argv[1];
  boost::mp11::mp_for_each<boost::mp11::mp_transform<boost::mp11::mp_identity, wire::Message>>(
      [&]<class T>(boost::mp11::mp_identity<T>) { message_seeds<T>(to); });
  lane_seeds(to);
  job_seeds(to);
  return 0;
}
