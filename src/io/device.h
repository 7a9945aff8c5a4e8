// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Drivers, devices, device stacks and files of the I/O model (docs/design/0010).
//
// A DeviceObject may be attached to a lower one; requests enter at the top of such a stack and each
// driver completes them or sends them to lower(). In a device tree the nodes own functional and
// filter devices, bus and node share the physical ones (docs/design/0004); the classes of this file
// only borrow.
//
// Thread rule: stacks are built and taken apart, and files opened, on the dispatch level of the
// reactor; call_driver() may be called on any thread and at any level.
#pragma once

#include "io/driver_references.h"
#include "io/irp.h"
#include "io/pnp.h"
#include "io/typed_pointer.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace ib::io {

class DeviceNode;

// A driver: its name and its routines. A dispatch routine owns the request. An entry that is null
// gets the default: send it down, or at the bottom of the stack Ok (DeviceControl: NotSupported).
struct DriverObject {
  using Dispatch = void (*)(DeviceObject& device, IrpRef irp);
  // Makes the driver's device for the stack of this node, before it is attached. The node owns it
  // and destroys it after Remove was answered. A filter that does not want this device returns
  // nullptr.
  using AddDevice = Result<std::unique_ptr<DeviceObject>> (*)(DriverObject& driver,
                                                              DeviceNode& node,
                                                              std::string& reason);
  // The driver has no device left: it releases everything else.
  using Unload = void (*)(DriverObject& driver);

  explicit DriverObject(std::string driver_name) : name(std::move(driver_name)) {}
  Dispatch& on(Major major) { return dispatch[static_cast<std::size_t>(major)]; }

  // The driver's own state, for its routines.
  template <class T>
  T& extension() const {
    T* value = extension_pointer.get<T>();
    IB_ASSERT(value != nullptr);
    return *value;
  }

  std::string name;
  std::array<Dispatch, kMajorCount> dispatch{};
  AddDevice add_device = nullptr;
  Unload unload = nullptr;
  TypedPointer extension_pointer;
  TypedPointer services;  // of the program that loaded it, for interfaces such as al/system.h
  DriverReferences references;
};

enum class DeviceKind : std::uint8_t {
  Physical,    // made by the driver of the bus: "there is a device"
  Functional,  // made by the driver that runs the device
  Filter,      // sees the requests on their way
};

class IB_DRIVER_API DeviceObject {
 public:
  DeviceObject(DriverObject& driver, std::string name, DeviceKind kind)
      : driver_(driver), name_(std::move(name)), kind_(kind) {
    driver_.references.take(DriverUse::Device);
  }
  DeviceObject(const DeviceObject&) = delete;
  DeviceObject& operator=(const DeviceObject&) = delete;
  // Detaches from the lower device. Nothing may be attached above, no file may be open, no request
  // may be in it. Drivers derive from this class for their data per device.
  virtual ~DeviceObject();

  // Puts this device on top of the stack that `lower` belongs to; all before requests are sent.
  // Returns LimitExceeded if the stack would get deeper than kMaxStackDepth.
  [[nodiscard]] Status attach(DeviceObject& lower);

  DriverObject& driver() const { return driver_; }
  const std::string& name() const { return name_; }
  DeviceKind kind() const { return kind_; }
  // A few words about this device for `softib devices`.
  virtual std::string note() const { return {}; }
  DeviceObject* lower() const { return lower_; }
  DeviceObject* upper() const { return upper_; }
  DeviceObject& top();
  std::size_t stack_depth() const { return stack_depth_; }  // of the stack from here down
  const std::vector<FileObject*>& open_files() const { return open_files_; }
  // Requests that were sent to this device and have not returned through it.
  std::uint32_t requests() const { return requests_.load(); }

  // The driver's state of this device ("device extension").
  template <class T>
  void set_extension(T* value) {
    extension_.set(value);
  }
  template <class T>
  T& extension() const {
    T* value = extension_.get<T>();
    IB_ASSERT(value != nullptr);
    return *value;
  }

 private:
  friend class FileObject;
  friend class Irp;

  DriverObject& driver_;
  std::string name_;
  DeviceKind kind_;
  DeviceObject* lower_ = nullptr;
  DeviceObject* upper_ = nullptr;
  std::size_t stack_depth_ = 1;
  std::vector<FileObject*> open_files_;
  std::atomic<std::uint32_t> requests_{0};
  TypedPointer extension_;
};

// The process behind a file, as far as drivers are concerned: one per connection to softibd.
struct Client {
  std::uint64_t session = 0;  // unique in the life of the daemon
  std::uint32_t pid = 0;
  std::uint32_t uid = 0;
  // The virtual host that it attached to; empty before. Set by the driver that handles Attach;
  // names that the client opens are looked up there.
  std::string node;
};

// A file: opened by Create, closed by Close. Drivers keep the data of one opener in it.
class IB_DRIVER_API FileObject {
 public:
  // `process`: file 0 of the same connection; nullptr if this is file 0 itself, or kernel mode.
  FileObject(DeviceObject& device, std::uint32_t number, Client& client, FileObject* process);
  FileObject(const FileObject&) = delete;
  FileObject& operator=(const FileObject&) = delete;
  ~FileObject();

  DeviceObject& device() const { return device_; }  // top of the stack that it was opened on
  std::uint32_t number() const { return number_; }  // its number for the client; 0: the fabric
  Client& client() const { return client_; }
  FileObject* process() const { return process_; }

  // A driver's state of this file, one per device of the stack, so that a filter and the function
  // driver do not share. Set it when handling Create; clear it when handling Close.
  template <class T>
  void set_context(const DeviceObject& device, T* value) {
    slot(device).set(value);
  }
  template <class T>
  T* context(const DeviceObject& device) const {
    return slot(device).template get<T>();
  }

 private:
  TypedPointer& slot(const DeviceObject& device);
  const TypedPointer& slot(const DeviceObject& device) const;

  DeviceObject& device_;
  std::uint32_t number_;
  Client& client_;
  FileObject* process_;
  std::array<TypedPointer, kMaxStackDepth> contexts_{};
};

// Sends the request to `device`, one location further. A driver that wants to see the result
// gives a completion routine, which owns the request when it runs (see Irp::Completion).
IB_DRIVER_API void call_driver(DeviceObject& device, IrpRef irp,
                               Irp::Completion completion = nullptr, void* context = nullptr);

// Dispatch routine of drivers that leave a request to those below; the default of a null entry.
IB_DRIVER_API void pass_down(DeviceObject& device, IrpRef irp);

// The direct call of kernel clients: the verb `code` with its public structures, without copying
// them into buffers first. The handler is the one that ioctls reach, and the IRP brings the result:
//   call_direct(ca, Code::CreateCq, create, created, irp.start(on_done, this));
// `in` and `out` live until the request is done.
template <class Code, class In, class Out>
void call_direct(DeviceObject& device, Code code, const In& in, Out& out, IrpRef irp) {
  irp->major = Major::DeviceControl;
  irp->requestor_mode = RequestorMode::Kernel;
  irp->code = static_cast<std::uint32_t>(code);
  irp->in = std::as_bytes(std::span(&in, 1));
  irp->out = std::as_writable_bytes(std::span(&out, 1));
  call_driver(device, std::move(irp));
}

}  // namespace ib::io
