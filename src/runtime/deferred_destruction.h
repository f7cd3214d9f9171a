// Destroys objects after the current callback of the event loop has returned: an object whose callback is running may be replaced at once,
// but not destroyed.
#pragma once
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "transport/anchor.h"

namespace motley::runtime {

/// Owns the objects until then: they are destroyed with it at the latest. Event-loop thread only.
class DeferredDestruction {
 public:
  explicit DeferredDestruction(boost::asio::io_context& event_loop) : event_loop_(event_loop) {}
  DeferredDestruction(const DeferredDestruction&) = delete;
  DeferredDestruction& operator=(const DeferredDestruction&) = delete;
  ~DeferredDestruction() = default;

  /// The object may be null. Objects are destroyed in the order of these calls.
  void add(std::shared_ptr<void> object) {
    if (!object) return;
    objects_.push_back(std::move(object));
    boost::asio::post(event_loop_, [here = anchor_.watch()] {
      if (DeferredDestruction* self = here.get()) self->destroy();
    });
  }

 private:
  void destroy() {
    for (auto& object : std::exchange(objects_, {})) object.reset();
  }

  boost::asio::io_context& event_loop_;
  std::vector<std::shared_ptr<void>> objects_;
  transport::Anchor<DeferredDestruction> anchor_{*this};
};

}  // namespace motley::runtime
