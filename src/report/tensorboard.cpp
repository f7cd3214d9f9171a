#include "report/tensorboard.h"

#include <fmt/format.h>

#include <bit>
#include <boost/crc.hpp>
#include <cctype>
#include <cmath>
#include <string>
#include <system_error>
#include <utility>

#include "base/check.h"

namespace motley::report {
namespace {

// Protobuf wire types.
enum WireType : std::uint8_t { varint_type = 0, fixed64_type = 1, bytes_type = 2, fixed32_type = 5 };

void put_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7FU) | 0x80U);
  out += static_cast<char>(value);
}

void put_fixed(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(value >> (8 * i));
}

void put_key(std::string& out, std::uint8_t field, WireType type) { put_varint(out, static_cast<std::uint64_t>(field) << 3U | type); }

void put_bytes(std::string& out, std::uint8_t field, std::string_view bytes) {
  put_key(out, field, bytes_type);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string event_at(double wall_time_s) {
  std::string event;
  put_key(event, 1, fixed64_type);
  put_fixed(event, std::bit_cast<std::uint64_t>(wall_time_s), 8);
  return event;
}

std::uint32_t masked_crc(std::string_view bytes) {
  boost::crc_optimal<32, 0x1EDC6F41, 0xFFFFFFFF, 0xFFFFFFFF, true, true> crc;  // Castagnoli's polynomial
  crc.process_bytes(bytes.data(), bytes.size());
  return std::rotr(static_cast<std::uint32_t>(crc.checksum()), 15) + 0xA282EAD8U;
}

std::string file_name(double wall_time_s, std::string_view host) {
  std::string safe;
  for (const char c : host) safe += std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '_' || c == '-' ? c : '_';
  return fmt::format("events.out.tfevents.{:010.0f}.{}", wall_time_s, safe);
}

}  // namespace

EventFile::EventFile(std::filesystem::path path) : path_(std::move(path)), out_(path_, std::ios::binary | std::ios::app) {}

Result<EventFile> EventFile::open(const std::filesystem::path& folder, double wall_time_s, std::string_view host) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);  // when it cannot, the file cannot be opened either
  EventFile file(folder / file_name(std::floor(wall_time_s), host));
  if (!file.out_)
    return world_failed(
        fmt::format("{}: may not be written ({}); expected a folder for TensorBoard's events that can be made and written to",
                    file.path_.string(), failure ? failure.message() : "the file did not open"));
  std::string first = event_at(wall_time_s);
  put_bytes(first, 3, "brain.Event:2");
  file.record(first);
  return file;
}

void EventFile::scalar(std::string_view tag, std::uint64_t step, double wall_time_s, double value) {
  std::string one;
  put_bytes(one, 1, tag);
  put_key(one, 2, fixed32_type);
  put_fixed(one, std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4);
  std::string summary;
  put_bytes(summary, 1, one);
  std::string event = event_at(wall_time_s);
  put_key(event, 2, varint_type);
  put_varint(event, step);
  put_bytes(event, 5, summary);
  record(event);
}

void EventFile::record(std::string_view data) {
  check(out_.is_open(), "an event file that takes records is open");
  std::string bytes;
  put_fixed(bytes, data.size(), 8);
  put_fixed(bytes, masked_crc(bytes), 4);
  bytes += data;
  put_fixed(bytes, masked_crc(data), 4);
  out_.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  out_.flush();
}

Outcome EventFile::close() {
  out_.close();
  if (out_) return Done{};
  return world_failed(fmt::format("{}: not all events could be written; is the disk full?", path_.string()));
}

void TensorBoard::on_event(const trace::Event& event) {
  const auto* evaluation = event.as<trace::Evaluated>();
  if (evaluation == nullptr) return;
  const double wall_s = began_wall_s_ + seconds(event.at);
  const std::uint64_t samples = evaluation->samples;
  file_.scalar("accuracy", samples, wall_s, evaluation->accuracy);
  file_.scalar("loss", samples, wall_s, evaluation->loss);
  if (event.at > last_ && samples >= last_samples_)
    file_.scalar("throughput", samples, wall_s, static_cast<double>(samples - last_samples_) / seconds(event.at - last_));
  last_ = event.at;
  last_samples_ = samples;
}

}  // namespace motley::report
