#include "transport/segment.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"

namespace motley::transport {
namespace {

constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error failed(std::string_view what) { return world_failed(fmt::format("{}: {}", what, std::strerror(errno))); }

class Mapped final : public Segment {
 public:
  explicit Mapped(std::span<std::byte> bytes) : bytes_(bytes) {}
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;
  ~Mapped() override { ::munmap(bytes_.data(), bytes_.size()); }
  std::span<std::byte> bytes() override { return bytes_; }

 private:
  std::span<std::byte> bytes_;
};

/// Mapped writable also for reading only, because a GPU's driver pins writable memory only.
Result<std::unique_ptr<Segment>> map(int file, std::size_t bytes) {
  void* first = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (first == MAP_FAILED) return failed(fmt::format("mapping {} bytes of shared memory", bytes));
  return std::unique_ptr<Segment>(std::make_unique<Mapped>(std::span(static_cast<std::byte*>(first), bytes)));
}

/// The seals are checked first: only a memfd has them, and the call cannot block in a file system that a peer provides.
Outcome examine(int file, std::size_t bytes) {
  const int found = ::fcntl(file, F_GET_SEALS);
  if (found < 0) return peer_broken("the peer shares something that is not anonymous memory (memfd)");
  if ((found & F_SEAL_SHRINK) == 0)
    return peer_broken("the peer shares memory that it could shrink, expected a memfd sealed by F_SEAL_SHRINK");
  struct stat status {};
  struct statfs system {};
  if (::fstat(file, &status) != 0 || ::fstatfs(file, &system) != 0) return failed("looking at the peer's shared memory");
  if (system.f_type != TMPFS_MAGIC) return peer_broken("the peer shares huge pages, which may be missing when they are read");
  if (status.st_size < 0 || static_cast<std::uint64_t>(status.st_size) != bytes)
    return peer_broken(fmt::format("the peer announces {} shared bytes, and the segment has {}", bytes, status.st_size));
  if (bytes == 0 || bytes > memory_of_this_machine())
    return peer_broken(fmt::format("the peer shares {} bytes, expected 1 to the {} of this machine", bytes, memory_of_this_machine()));
  return Done{};
}

}  // namespace

bool has_segments() {
  static const bool has = make_segment(1).ok();
  return has;
}

Result<SharedSegment> make_segment(std::size_t bytes) {
  auto file = std::make_shared<const Descriptor>(::memfd_create("motley", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (file->number() < 0 || ::ftruncate(file->number(), static_cast<off_t>(bytes)) != 0 || ::fcntl(file->number(), F_ADD_SEALS, seals) != 0)
    return failed(fmt::format("making {} bytes of shared memory (memfd)", bytes));
  Result<std::unique_ptr<Segment>> memory = map(file->number(), bytes);
  if (!memory.ok()) return memory.error();
  return SharedSegment{std::move(*memory), std::move(file)};
}

Result<std::unique_ptr<Segment>> map_segment(const Descriptor& file, std::size_t bytes) {
  if (const Outcome good = examine(file.number(), bytes); !good.ok()) return good.error();
  return map(file.number(), bytes);
}

SegmentId id_of(const Descriptor& file) {
  struct stat status {};
  check(::fstat(file.number(), &status) == 0, "a segment's descriptor is open");
  return {status.st_dev, status.st_ino};
}

std::size_t memory_of_this_machine() {
  return static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

}  // namespace motley::transport
