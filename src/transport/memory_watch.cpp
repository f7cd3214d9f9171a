#include "transport/memory_watch.h"

#include <mutex>
#include <utility>

namespace motley::transport {
namespace {

std::mutex mutex;  // NOLINT(cert-err58-cpp): it does not throw
std::shared_ptr<const MemoryWatch> watching;

class Watched final : public Segment {
 public:
  Watched(std::unique_ptr<Segment> inner, std::shared_ptr<const MemoryWatch> by) : inner_(std::move(inner)), by_(std::move(by)) {
    by_->mapped(inner_->bytes());
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;
  ~Watched() override { by_->unmapping(inner_->bytes()); }
  std::span<std::byte> bytes() override { return inner_->bytes(); }

 private:
  std::unique_ptr<Segment> inner_;
  std::shared_ptr<const MemoryWatch> by_;
};

}  // namespace

void watch_memory(MemoryWatch watch) {
  auto shared = std::make_shared<const MemoryWatch>(std::move(watch));
  const std::lock_guard lock(mutex);
  watching = std::move(shared);
}

std::unique_ptr<Segment> watched(std::unique_ptr<Segment> segment) {
  std::shared_ptr<const MemoryWatch> by;
  {
    const std::lock_guard lock(mutex);
    by = watching;
  }
  if (!by) return segment;
  return std::make_unique<Watched>(std::move(segment), std::move(by));
}

}  // namespace motley::transport
