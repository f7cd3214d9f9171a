// Segments from UCT, the lower half of UCX: the memory domain "posix" makes them, names them for others and maps theirs. It opens a segment
// of another process by way of /proc/PID/fd, so that no name in /dev/shm outlives anybody.
#include "transport/segment.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <ucs/config/global_opts.h>
#include <ucs/debug/debug.h>
#include <uct/api/uct.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <mutex>
#include <string>
#include <string_view>

#include "wire/encode.h"

namespace motley::transport {
namespace {

constexpr const char* domain_name = "posix";
// key := place (this_place()) address:u64 UCX's own        the address is what UCX turns into one of the other process's
constexpr std::size_t boot_bytes = 36, place_bytes = boot_bytes + 12, address_bytes = 8, ours_bytes = place_bytes + address_bytes;
static_assert(sizeof(void*) == address_bytes);

Error failed(std::string_view what, ucs_status_t status) {
  return world_failed(fmt::format("UCX: {}: {}", what, ucs_status_string(status)));
}

/// Within which a process's number means the same to all: this boot of this machine, this namespace of processes, this user. UCX finds a
/// segment by its process's number, and elsewhere that number is somebody else's.
Result<wire::Bytes> this_place() {
  std::ifstream file("/proc/sys/kernel/random/boot_id");
  std::string boot;
  struct stat processes {};
  if (!std::getline(file, boot) || ::stat("/proc/self/ns/pid", &processes) != 0)
    return world_failed("/proc does not say on which machine this process is, so memory cannot be shared");
  boot.resize(boot_bytes);
  wire::Bytes place;
  for (const char c : boot) place.push_back(static_cast<std::byte>(c));
  wire::Appender to{place};
  to.put(processes.st_ino, 8);
  to.put(::getuid(), 4);
  return place;
}

/// UCX complains on standard output, which is for our own answers; its errors come back as values all the same. When we crash, it tells a
/// long story instead of letting us, and what was said before that is lost.
void hush() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (std::getenv("UCX_LOG_LEVEL") == nullptr) static_cast<void>(ucs_global_opts_set_value("LOG_LEVEL", "fatal"));
    if (std::getenv("UCX_HANDLE_ERRORS") == nullptr)
      for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE}) ucs_debug_disable_signal(signal);
  });
}

/// UCX's door to one kind of memory, and the component that it came from.
class Domain {
 public:
  Domain() = default;
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  ~Domain() {
    if (md_ != nullptr) uct_md_close(md_);
    if (components_ != nullptr) uct_release_component_list(components_);
  }

  Outcome open() {
    hush();
    if (const ucs_status_t status = uct_query_components(&components_, &count_); status != UCS_OK) return failed("its components", status);
    for (unsigned i = 0; i < count_ && component_ == nullptr; ++i)
      if (name_of(components_[i]) == domain_name) component_ = components_[i];
    if (component_ == nullptr) return world_failed("UCX has no shared memory here");
    uct_md_config_t* config = nullptr;
    if (const ucs_status_t status = uct_md_config_read(component_, nullptr, nullptr, &config); status != UCS_OK)
      return failed("settings of shared memory", status);
    const ucs_status_t opened = uct_md_open(component_, domain_name, config, &md_);
    uct_config_release(config);
    if (opened != UCS_OK) return failed("shared memory", opened);
    if (const ucs_status_t status = uct_md_query(md_, &attributes_); status != UCS_OK) return failed("what shared memory can do", status);
    if ((attributes_.cap.flags & needed) != needed || ours_bytes + attributes_.rkey_packed_size > longest_segment_key)
      return world_failed("UCX's shared memory cannot be mapped here");
    return Done{};
  }

  [[nodiscard]] uct_component_h component() const { return component_; }
  [[nodiscard]] uct_md_h md() const { return md_; }
  [[nodiscard]] std::size_t key_bytes() const { return attributes_.rkey_packed_size; }

 private:
  static constexpr std::uint64_t needed = UCT_MD_FLAG_ALLOC | UCT_MD_FLAG_RKEY_PTR;

  static std::string name_of(uct_component_h component) {
    uct_component_attr_t attributes{};
    attributes.field_mask = UCT_COMPONENT_ATTR_FIELD_NAME;
    return uct_component_query(component, &attributes) == UCS_OK ? attributes.name : "";
  }

  uct_component_h* components_ = nullptr;
  unsigned count_ = 0;
  uct_component_h component_ = nullptr;
  uct_md_h md_ = nullptr;
  uct_md_attr_t attributes_{};
  [[maybe_unused]] std::array<std::byte, 256> beyond_{};  // as in OwnSegment
};

class OwnSegment final : public Segment {
 public:
  OwnSegment() = default;
  OwnSegment(const OwnSegment&) = delete;
  OwnSegment& operator=(const OwnSegment&) = delete;
  ~OwnSegment() override {
    if (memory_.address != nullptr) uct_mem_free(&memory_);
  }

  Outcome make(std::size_t bytes) {
    if (Outcome opened = domain_.open(); !opened.ok()) return opened;
    const uct_alloc_method_t method = UCT_ALLOC_METHOD_MD;
    uct_md_h md = domain_.md();
    uct_mem_alloc_params_t params{};
    params.field_mask = UCT_MEM_ALLOC_PARAM_FIELD_FLAGS | UCT_MEM_ALLOC_PARAM_FIELD_MDS | UCT_MEM_ALLOC_PARAM_FIELD_NAME;
    params.flags = UCT_MD_MEM_ACCESS_ALL | UCT_MD_MEM_FLAG_HIDE_ERRORS;
    params.mds.mds = &md;
    params.mds.count = 1;
    params.name = "motley bulk lane";
    bytes_ = bytes;
    const ucs_status_t made = uct_mem_alloc(bytes, &method, 1, &params, &memory_);
    if (made != UCS_OK) {
      memory_.address = nullptr;
      return failed(fmt::format("{} bytes of shared memory", bytes), made);
    }
    return Done{};
  }

  Result<wire::Bytes> key() {
    Result<wire::Bytes> key = this_place();
    if (!key.ok()) return key;
    key->resize(ours_bytes + domain_.key_bytes());
    std::memcpy(key->data() + place_bytes, &memory_.address, address_bytes);
    const ucs_status_t packed = uct_md_mkey_pack(domain_.md(), memory_.memh, key->data() + ours_bytes);
    if (packed != UCS_OK) return failed("the key of shared memory", packed);
    return key;
  }

  std::span<std::byte> bytes() override { return {static_cast<std::byte*>(memory_.address), bytes_}; }

 private:
  Domain domain_;
  uct_allocated_memory_t memory_{};
  [[maybe_unused]] std::array<std::byte, 64> beyond_{};  // later versions of UCX write more than the header of this one says
  std::size_t bytes_ = 0;                                // asked for; UCX rounds up to pages
};

class FoundSegment final : public Segment {
 public:
  FoundSegment() = default;
  FoundSegment(const FoundSegment&) = delete;
  FoundSegment& operator=(const FoundSegment&) = delete;
  ~FoundSegment() override {
    if (mapped_) uct_rkey_release(domain_.component(), &rkey_);
  }

  Outcome find(std::span<const std::byte> key, std::size_t bytes) {
    if (Outcome opened = domain_.open(); !opened.ok()) return opened;
    if (key.size() != ours_bytes + domain_.key_bytes())
      return peer_broken("the key of the peer's shared memory is of another UCX than ours");
    const Result<wire::Bytes> place = this_place();
    if (!place.ok()) return place.error();
    if (!std::equal(place->begin(), place->end(), key.begin()))
      return world_failed("the peer is on another machine, in another container or another user's, so memory cannot be shared");
    const ucs_status_t unpacked = uct_rkey_unpack(domain_.component(), key.data() + ours_bytes, &rkey_);
    mapped_ = unpacked == UCS_OK;
    if (!mapped_) return failed("the peer's shared memory cannot be reached", unpacked);
    std::uint64_t owners_address = 0;
    std::memcpy(&owners_address, key.data() + place_bytes, address_bytes);
    void* address = nullptr;
    if (const ucs_status_t status = uct_rkey_ptr(domain_.component(), &rkey_, owners_address, &address); status != UCS_OK)
      return failed("the peer's shared memory cannot be addressed", status);
    bytes_ = {static_cast<std::byte*>(address), bytes};
    return Done{};
  }

  std::span<std::byte> bytes() override { return bytes_; }

 private:
  Domain domain_;
  uct_rkey_bundle_t rkey_{};
  bool mapped_ = false;
  std::span<std::byte> bytes_;
};

}  // namespace

bool has_segments() { return true; }

Result<SharedSegment> make_segment(std::size_t bytes) {
  auto segment = std::make_unique<OwnSegment>();
  if (Outcome made = segment->make(bytes); !made.ok()) return made.error();
  Result<wire::Bytes> key = segment->key();
  if (!key.ok()) return key.error();
  return SharedSegment{std::move(segment), std::move(*key)};
}

Result<std::unique_ptr<Segment>> find_segment(std::span<const std::byte> key, std::size_t bytes) {
  auto segment = std::make_unique<FoundSegment>();
  if (Outcome found = segment->find(key, bytes); !found.ok()) return found.error();
  return std::unique_ptr<Segment>(std::move(segment));
}

}  // namespace motley::transport
