// A weak pointer to an object that is not owned by a shared_ptr: tells a posted handler, or the code after a callback, whether the object
// was destroyed meanwhile. Unlike std::weak_ptr::lock() it never extends the object's life. One thread.
#pragma once
#include <memory>

namespace motley::transport {

template <class T>
class Watch {
 public:
  Watch() = default;
  Watch(T& object, const std::shared_ptr<const char>& life) : object_(&object), life_(life) {}
  /// Null once the object is gone.
  [[nodiscard]] T* get() const { return life_.expired() ? nullptr : object_; }
  [[nodiscard]] bool gone() const { return life_.expired(); }

 private:
  T* object_ = nullptr;
  std::weak_ptr<const char> life_;
};

/// The last member of the watched object, so that it is destroyed first.
template <class T>
class Anchor {
 public:
  explicit Anchor(T& object) : object_(object) {}
  Anchor(const Anchor&) = delete;
  Anchor& operator=(const Anchor&) = delete;
  ~Anchor() = default;
  [[nodiscard]] Watch<T> watch() const { return {object_, life_}; }

 private:
  T& object_;
  std::shared_ptr<const char> life_ = std::make_shared<const char>();
};

}  // namespace motley::transport
