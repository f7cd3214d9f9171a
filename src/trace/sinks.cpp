#include "trace/sinks.h"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <bit>
#include <cstring>

#include "base/check.h"

namespace motley::trace {
namespace {

static_assert(std::endian::native == std::endian::little, "records are written as the machine holds them");
constexpr std::size_t block_bytes = record_bytes * 1024;

template <class T>
std::byte* put(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
  return at + sizeof value;
}
template <class T>
const std::byte* get(const std::byte* at, T& value) {
  std::memcpy(&value, at, sizeof value);
  return at + sizeof value;
}

}  // namespace

void write_record(const Event& e, std::span<std::byte, record_bytes> out) {
  std::byte* at = out.data();
  at = put(at, static_cast<std::int64_t>(e.at.time_since_epoch().count()));
  at = put(at, static_cast<std::uint8_t>(e.kind));
  at = put(at, e.why);
  at = put(at, e.epoch);
  at = put(at, e.worker.value);
  at = put(at, e.step.value);
  at = put(at, e.version.value);
  at = put(at, e.first);
  at = put(at, e.last);
  at = put(at, e.value);
  put(at, e.second);
}

Result<Event> read_record(std::span<const std::byte, record_bytes> bytes) {
  Event e;
  std::int64_t at_ns = 0;
  std::uint8_t kind = 0;
  const std::byte* at = bytes.data();
  at = get(at, at_ns);
  at = get(at, kind);
  at = get(at, e.why);
  at = get(at, e.epoch);
  at = get(at, e.worker.value);
  at = get(at, e.step.value);
  at = get(at, e.version.value);
  at = get(at, e.first);
  at = get(at, e.last);
  at = get(at, e.value);
  get(at, e.second);
  if (kind > static_cast<std::uint8_t>(Kind::repartition))
    return bad_input(fmt::format("trace record of kind {}: expected 0 to {}; the trace is damaged or from a newer version", kind,
                                 static_cast<int>(Kind::repartition)));
  e.at = Instant{Duration{at_ns}};
  e.kind = static_cast<Kind>(kind);
  return e;
}

struct Writer::Digest {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  Digest() { check(context != nullptr && EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1, "OpenSSL offers SHA-256"); }
  ~Digest() { EVP_MD_CTX_free(context); }
  Digest(const Digest&) = delete;
  Digest& operator=(const Digest&) = delete;
};

Writer::Writer(ByteSink bytes) : bytes_(std::move(bytes)), digest_(std::make_unique<Digest>()) { block_.reserve(block_bytes); }
Writer::~Writer() = default;

void Writer::on_event(const Event& event) {
  const std::size_t end = block_.size();
  block_.resize(end + record_bytes);
  write_record(event, std::span<std::byte, record_bytes>(block_.data() + end, record_bytes));
  if (block_.size() >= block_bytes) flush();
}

void Writer::flush() {
  check(EVP_DigestUpdate(digest_->context, block_.data(), block_.size()) == 1, "hashing a trace block succeeds");
  if (bytes_) bytes_(block_);
  block_.clear();
}

std::string Writer::finish() {
  flush();
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int size = 0;
  check(EVP_DigestFinal_ex(digest_->context, hash.data(), &size) == 1, "finishing the trace's hash succeeds");
  std::string text;
  for (unsigned int i = 0; i < size; ++i) text += fmt::format("{:02x}", hash[i]);
  return text;
}

}  // namespace motley::trace
