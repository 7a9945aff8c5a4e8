// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Part of verbs/control.h: the layout of every buffer, field by field, as version kAbiVersion has
// it on every machine. A line here changes only together with that number.
//
// Included by control.h, so that no client can be compiled against another layout; tests/abi does
// it for 32 bit, where 64-bit numbers are aligned to 4 bytes only and padding would show.
#pragma once

#include "verbs/control_buffers.h"
#include "verbs/control_rdma_cm.h"
#include "verbs/control_tree.h"

#include <cstddef>
#include <type_traits>

// No hidden padding, nothing but bytes.
#define IB_SIZE(type, bytes)                                                  \
  static_assert(sizeof(type) == (bytes) && std::is_standard_layout_v<type> && \
                std::is_trivially_copyable_v<type> &&                         \
                std::has_unique_object_representations_v<type>)
#define IB_FIELD(type, field, offset, bytes) \
  static_assert(offsetof(type, field) == (offset) && sizeof(type::field) == (bytes))

namespace ib::verbs::control {

IB_SIZE(AddressVector, 32);
IB_FIELD(AddressVector, dgid, 0, 16);
IB_FIELD(AddressVector, flow_label, 16, 4);
IB_FIELD(AddressVector, dlid, 20, 2);
IB_FIELD(AddressVector, sgid_index, 22, 1);
IB_FIELD(AddressVector, hop_limit, 23, 1);
IB_FIELD(AddressVector, traffic_class, 24, 1);
IB_FIELD(AddressVector, is_global, 25, 1);
IB_FIELD(AddressVector, sl, 26, 1);
IB_FIELD(AddressVector, src_path_bits, 27, 1);
IB_FIELD(AddressVector, static_rate, 28, 1);
IB_FIELD(AddressVector, port, 29, 1);
IB_FIELD(AddressVector, reserved, 30, 2);

IB_SIZE(IndexIn, 8);
IB_FIELD(IndexIn, index, 0, 4);
IB_FIELD(IndexIn, reserved, 4, 4);

IB_SIZE(GenerationIn, 8);
IB_FIELD(GenerationIn, index, 0, 4);
IB_FIELD(GenerationIn, generation, 4, 4);

IB_SIZE(TraceReadIn, 8);
IB_FIELD(TraceReadIn, after, 0, 8);

IB_SIZE(ViewIn, 320);
IB_FIELD(ViewIn, node, 0, 64);
IB_FIELD(ViewIn, path, 64, 256);

IB_SIZE(ViewStatOut, 280);
IB_FIELD(ViewStatOut, kind, 0, 4);
IB_FIELD(ViewStatOut, mode, 4, 4);
IB_FIELD(ViewStatOut, size, 8, 8);
IB_FIELD(ViewStatOut, device_major, 16, 4);
IB_FIELD(ViewStatOut, device_minor, 20, 4);
IB_FIELD(ViewStatOut, target, 24, 256);

IB_SIZE(SetPortIn, 136);
IB_FIELD(SetPortIn, node, 0, 64);
IB_FIELD(SetPortIn, ca, 64, 64);
IB_FIELD(SetPortIn, port, 128, 4);
IB_FIELD(SetPortIn, up, 132, 4);

IB_SIZE(InterfaceAddress, 32);
IB_FIELD(InterfaceAddress, ip, 0, 16);
IB_FIELD(InterfaceAddress, interface, 16, 16);

IB_SIZE(SetAddressesIn, 2128);
IB_FIELD(SetAddressesIn, node, 0, 64);
IB_FIELD(SetAddressesIn, network_namespace, 64, 8);
IB_FIELD(SetAddressesIn, count, 72, 4);
IB_FIELD(SetAddressesIn, reserved, 76, 4);
IB_FIELD(SetAddressesIn, addresses, 80, 2048);

IB_SIZE(PrefixedAddress, 20);
IB_FIELD(PrefixedAddress, ip, 0, 16);
IB_FIELD(PrefixedAddress, bits, 16, 4);

IB_SIZE(SetIpInterfaceIn, 1352);
IB_FIELD(SetIpInterfaceIn, name, 0, 16);
IB_FIELD(SetIpInterfaceIn, network_namespace, 16, 8);
IB_FIELD(SetIpInterfaceIn, node_guid, 24, 8);
IB_FIELD(SetIpInterfaceIn, port, 32, 4);
IB_FIELD(SetIpInterfaceIn, index, 36, 4);
IB_FIELD(SetIpInterfaceIn, pkey, 40, 2);
IB_FIELD(SetIpInterfaceIn, connected_mode, 42, 2);
IB_FIELD(SetIpInterfaceIn, hardware_address, 44, 20);
IB_FIELD(SetIpInterfaceIn, count, 64, 4);
IB_FIELD(SetIpInterfaceIn, addresses, 68, 1280);
IB_FIELD(SetIpInterfaceIn, reserved, 1348, 4);

IB_SIZE(OpenRdmaCmIn, 128);
IB_FIELD(OpenRdmaCmIn, node, 0, 64);
IB_FIELD(OpenRdmaCmIn, program, 64, 64);

IB_SIZE(RdmaCmHead, 24);
IB_FIELD(RdmaCmHead, file, 0, 4);
IB_FIELD(RdmaCmHead, from_file, 4, 4);
IB_FIELD(RdmaCmHead, size, 8, 8);
IB_FIELD(RdmaCmHead, option_size, 16, 4);
IB_FIELD(RdmaCmHead, flags, 20, 4);

IB_SIZE(RdmaCmIn, 1048);
IB_FIELD(RdmaCmIn, head, 0, 24);
IB_FIELD(RdmaCmIn, bytes, 24, 512);
IB_FIELD(RdmaCmIn, option, 536, 512);

IB_SIZE(RdmaCmOut, 384);
IB_FIELD(RdmaCmOut, result, 0, 4);
IB_FIELD(RdmaCmOut, flags, 4, 4);
IB_FIELD(RdmaCmOut, address, 8, 8);
IB_FIELD(RdmaCmOut, size, 16, 4);
IB_FIELD(RdmaCmOut, need, 20, 4);
IB_FIELD(RdmaCmOut, need_address, 24, 8);
IB_FIELD(RdmaCmOut, need_size, 32, 4);
IB_FIELD(RdmaCmOut, ahead_size, 36, 4);
IB_FIELD(RdmaCmOut, bytes, 40, 344);

IB_SIZE(RdmaCmAhead, 16);
IB_FIELD(RdmaCmAhead, code, 0, 4);
IB_FIELD(RdmaCmAhead, id, 4, 4);
IB_FIELD(RdmaCmAhead, option, 8, 4);
IB_FIELD(RdmaCmAhead, size, 12, 4);

IB_SIZE(KeepIn, 8);
IB_FIELD(KeepIn, keep, 0, 4);
IB_FIELD(KeepIn, go_now, 4, 4);

IB_SIZE(AttachIn, 136);
IB_FIELD(AttachIn, abi, 0, 4);
IB_FIELD(AttachIn, flags, 4, 4);
IB_FIELD(AttachIn, node, 8, 64);
IB_FIELD(AttachIn, program, 72, 64);

IB_SIZE(CaName, 72);
IB_FIELD(CaName, name, 0, 64);
IB_FIELD(CaName, node_guid, 64, 8);

IB_SIZE(AttachOut, 1240);
IB_FIELD(AttachOut, slot, 0, 4);
IB_FIELD(AttachOut, slot_generation, 4, 4);
IB_FIELD(AttachOut, arena_size, 8, 8);
IB_FIELD(AttachOut, node, 16, 64);
IB_FIELD(AttachOut, ca_count, 80, 4);
IB_FIELD(AttachOut, reserved, 84, 4);
IB_FIELD(AttachOut, cas, 88, 1152);

IB_SIZE(OpenIn, 128);
IB_FIELD(OpenIn, path, 0, 128);

IB_SIZE(OpenOut, 80);
IB_FIELD(OpenOut, ca, 0, 72);
IB_FIELD(OpenOut, ca_index, 72, 4);
IB_FIELD(OpenOut, first_port, 76, 4);

IB_SIZE(CloseIn, 8);
IB_FIELD(CloseIn, file, 0, 4);
IB_FIELD(CloseIn, reserved, 4, 4);

IB_SIZE(EventOut, 24);
IB_FIELD(EventOut, type, 0, 4);
IB_FIELD(EventOut, object, 4, 4);
IB_FIELD(EventOut, file, 8, 4);
IB_FIELD(EventOut, index, 12, 4);
IB_FIELD(EventOut, cookie, 16, 8);

IB_SIZE(RaiseEventIn, 16);
IB_FIELD(RaiseEventIn, object, 0, 4);
IB_FIELD(RaiseEventIn, index, 4, 4);
IB_FIELD(RaiseEventIn, generation, 8, 4);
IB_FIELD(RaiseEventIn, type, 12, 4);

IB_SIZE(TraceErrorIn, 64);
IB_FIELD(TraceErrorIn, qp_index, 0, 4);
IB_FIELD(TraceErrorIn, peer_qpn, 4, 4);
IB_FIELD(TraceErrorIn, status, 8, 4);
IB_FIELD(TraceErrorIn, peer_status, 12, 4);
IB_FIELD(TraceErrorIn, opcode, 16, 4);
IB_FIELD(TraceErrorIn, cause, 20, 4);
IB_FIELD(TraceErrorIn, detail, 24, 8);
IB_FIELD(TraceErrorIn, wr_id, 32, 8);
IB_FIELD(TraceErrorIn, address, 40, 8);
IB_FIELD(TraceErrorIn, length, 48, 8);
IB_FIELD(TraceErrorIn, key, 56, 4);
IB_FIELD(TraceErrorIn, reserved, 60, 4);

IB_SIZE(BackingIn, 8);
IB_FIELD(BackingIn, size, 0, 8);

IB_SIZE(BackingOut, 16);
IB_FIELD(BackingOut, size, 0, 8);
IB_FIELD(BackingOut, generation, 8, 4);
IB_FIELD(BackingOut, reserved, 12, 4);

IB_SIZE(CaAttr, 216);
IB_FIELD(CaAttr, fw_ver, 0, 64);
IB_FIELD(CaAttr, node_guid, 64, 8);
IB_FIELD(CaAttr, sys_image_guid, 72, 8);
IB_FIELD(CaAttr, max_mr_size, 80, 8);
IB_FIELD(CaAttr, page_size_cap, 88, 8);
IB_FIELD(CaAttr, vendor_id, 96, 4);
IB_FIELD(CaAttr, vendor_part_id, 100, 4);
IB_FIELD(CaAttr, hw_ver, 104, 4);
IB_FIELD(CaAttr, max_qp, 108, 4);
IB_FIELD(CaAttr, max_qp_wr, 112, 4);
IB_FIELD(CaAttr, device_cap_flags, 116, 4);
IB_FIELD(CaAttr, max_sge, 120, 4);
IB_FIELD(CaAttr, max_sge_rd, 124, 4);
IB_FIELD(CaAttr, max_cq, 128, 4);
IB_FIELD(CaAttr, max_cqe, 132, 4);
IB_FIELD(CaAttr, max_mr, 136, 4);
IB_FIELD(CaAttr, max_pd, 140, 4);
IB_FIELD(CaAttr, max_qp_rd_atom, 144, 4);
IB_FIELD(CaAttr, max_qp_init_rd_atom, 148, 4);
IB_FIELD(CaAttr, max_res_rd_atom, 152, 4);
IB_FIELD(CaAttr, max_mw, 156, 4);
IB_FIELD(CaAttr, max_mcast_grp, 160, 4);
IB_FIELD(CaAttr, max_mcast_qp_attach, 164, 4);
IB_FIELD(CaAttr, max_total_mcast_qp_attach, 168, 4);
IB_FIELD(CaAttr, max_ah, 172, 4);
IB_FIELD(CaAttr, max_srq, 176, 4);
IB_FIELD(CaAttr, max_srq_wr, 180, 4);
IB_FIELD(CaAttr, max_srq_sge, 184, 4);
IB_FIELD(CaAttr, max_inline, 188, 4);
IB_FIELD(CaAttr, max_xrcd, 192, 4);
IB_FIELD(CaAttr, max_pkeys, 196, 4);
IB_FIELD(CaAttr, local_ca_ack_delay, 200, 4);
IB_FIELD(CaAttr, port_count, 204, 4);
IB_FIELD(CaAttr, max_dm_size, 208, 8);

IB_SIZE(PortIn, 8);
IB_FIELD(PortIn, port, 0, 4);
IB_FIELD(PortIn, reserved, 4, 4);

IB_SIZE(PortAttr, 56);
IB_FIELD(PortAttr, state, 0, 4);
IB_FIELD(PortAttr, max_mtu, 4, 4);
IB_FIELD(PortAttr, active_mtu, 8, 4);
IB_FIELD(PortAttr, gid_tbl_len, 12, 4);
IB_FIELD(PortAttr, port_cap_flags, 16, 4);
IB_FIELD(PortAttr, max_msg_sz, 20, 4);
IB_FIELD(PortAttr, bad_pkey_cntr, 24, 4);
IB_FIELD(PortAttr, qkey_viol_cntr, 28, 4);
IB_FIELD(PortAttr, pkey_tbl_len, 32, 4);
IB_FIELD(PortAttr, lid, 36, 2);
IB_FIELD(PortAttr, sm_lid, 38, 2);
IB_FIELD(PortAttr, lmc, 40, 1);
IB_FIELD(PortAttr, max_vl_num, 41, 1);
IB_FIELD(PortAttr, sm_sl, 42, 1);
IB_FIELD(PortAttr, subnet_timeout, 43, 1);
IB_FIELD(PortAttr, init_type_reply, 44, 1);
IB_FIELD(PortAttr, active_width, 45, 1);
IB_FIELD(PortAttr, active_speed, 46, 1);
IB_FIELD(PortAttr, phys_state, 47, 1);
IB_FIELD(PortAttr, link_layer, 48, 4);
IB_FIELD(PortAttr, flags, 52, 4);

IB_SIZE(ModifyPortIn, 16);
IB_FIELD(ModifyPortIn, port, 0, 4);
IB_FIELD(ModifyPortIn, set_cap_mask, 4, 4);
IB_FIELD(ModifyPortIn, clear_cap_mask, 8, 4);
IB_FIELD(ModifyPortIn, flags, 12, 4);

IB_SIZE(TableIn, 8);
IB_FIELD(TableIn, port, 0, 4);
IB_FIELD(TableIn, index, 4, 4);

IB_SIZE(GidOut, 40);
IB_FIELD(GidOut, gid, 0, 16);
IB_FIELD(GidOut, type, 16, 4);
IB_FIELD(GidOut, reserved, 20, 4);
IB_FIELD(GidOut, interface, 24, 16);

IB_SIZE(PkeyOut, 8);
IB_FIELD(PkeyOut, pkey, 0, 2);
IB_FIELD(PkeyOut, reserved, 2, 6);

IB_SIZE(MadIn, 264);
IB_FIELD(MadIn, port, 0, 4);
IB_FIELD(MadIn, reserved, 4, 4);
IB_FIELD(MadIn, mad, 8, 256);

IB_SIZE(MadOut, 256);
IB_FIELD(MadOut, mad, 0, 256);

IB_SIZE(RegMrIn, 40);
IB_FIELD(RegMrIn, pd, 0, 4);
IB_FIELD(RegMrIn, access, 4, 4);
IB_FIELD(RegMrIn, address, 8, 8);
IB_FIELD(RegMrIn, length, 16, 8);
IB_FIELD(RegMrIn, iova, 24, 8);
IB_FIELD(RegMrIn, dm, 32, 4);
IB_FIELD(RegMrIn, flags, 36, 4);

IB_SIZE(PhysicalRange, 16);
IB_FIELD(PhysicalRange, address, 0, 8);
IB_FIELD(PhysicalRange, length, 8, 8);

IB_SIZE(PhysicalIn, 4128);
IB_FIELD(PhysicalIn, pd, 0, 4);
IB_FIELD(PhysicalIn, access, 4, 4);
IB_FIELD(PhysicalIn, iova, 8, 8);
IB_FIELD(PhysicalIn, dm, 16, 4);
IB_FIELD(PhysicalIn, count, 20, 4);
IB_FIELD(PhysicalIn, region, 24, 4);
IB_FIELD(PhysicalIn, reserved, 28, 4);
IB_FIELD(PhysicalIn, ranges, 32, 4096);

IB_SIZE(ReregMrIn, 48);
IB_FIELD(ReregMrIn, index, 0, 4);
IB_FIELD(ReregMrIn, change, 4, 4);
IB_FIELD(ReregMrIn, to, 8, 40);

IB_SIZE(MrOut, 24);
IB_FIELD(MrOut, lkey, 0, 4);
IB_FIELD(MrOut, rkey, 4, 4);
IB_FIELD(MrOut, address, 8, 8);
IB_FIELD(MrOut, length, 16, 8);

IB_SIZE(AllocMwIn, 8);
IB_FIELD(AllocMwIn, pd, 0, 4);
IB_FIELD(AllocMwIn, type, 4, 4);

IB_SIZE(AllocDmIn, 16);
IB_FIELD(AllocDmIn, length, 0, 8);
IB_FIELD(AllocDmIn, log_align, 8, 4);
IB_FIELD(AllocDmIn, reserved, 12, 4);

IB_SIZE(DmOut, 16);
IB_FIELD(DmOut, offset, 0, 8);
IB_FIELD(DmOut, length, 8, 8);

IB_SIZE(CreateAhIn, 40);
IB_FIELD(CreateAhIn, pd, 0, 4);
IB_FIELD(CreateAhIn, reserved, 4, 4);
IB_FIELD(CreateAhIn, av, 8, 32);

IB_SIZE(CreateCqIn, 24);
IB_FIELD(CreateCqIn, cqe, 0, 4);
IB_FIELD(CreateCqIn, channel, 4, 4);
IB_FIELD(CreateCqIn, comp_vector, 8, 4);
IB_FIELD(CreateCqIn, flags, 12, 4);
IB_FIELD(CreateCqIn, cookie, 16, 8);

IB_SIZE(ResizeCqIn, 8);
IB_FIELD(ResizeCqIn, index, 0, 4);
IB_FIELD(ResizeCqIn, cqe, 4, 4);

IB_SIZE(CqOut, 16);
IB_FIELD(CqOut, cqe, 0, 4);
IB_FIELD(CqOut, slots, 4, 4);
IB_FIELD(CqOut, ring, 8, 8);

IB_SIZE(OpenXrcdIn, 24);
IB_FIELD(OpenXrcdIn, inode, 0, 8);
IB_FIELD(OpenXrcdIn, device, 8, 8);
IB_FIELD(OpenXrcdIn, flags, 16, 4);
IB_FIELD(OpenXrcdIn, reserved, 20, 4);

IB_SIZE(CreateSrqIn, 40);
IB_FIELD(CreateSrqIn, type, 0, 4);
IB_FIELD(CreateSrqIn, pd, 4, 4);
IB_FIELD(CreateSrqIn, xrcd, 8, 4);
IB_FIELD(CreateSrqIn, cq, 12, 4);
IB_FIELD(CreateSrqIn, max_wr, 16, 4);
IB_FIELD(CreateSrqIn, max_sge, 20, 4);
IB_FIELD(CreateSrqIn, limit, 24, 4);
IB_FIELD(CreateSrqIn, reserved, 28, 4);
IB_FIELD(CreateSrqIn, cookie, 32, 8);

IB_SIZE(ModifySrqIn, 16);
IB_FIELD(ModifySrqIn, index, 0, 4);
IB_FIELD(ModifySrqIn, mask, 4, 4);
IB_FIELD(ModifySrqIn, max_wr, 8, 4);
IB_FIELD(ModifySrqIn, limit, 12, 4);

IB_SIZE(SrqOut, 32);
IB_FIELD(SrqOut, max_wr, 0, 4);
IB_FIELD(SrqOut, max_sge, 4, 4);
IB_FIELD(SrqOut, limit, 8, 4);
IB_FIELD(SrqOut, slots, 12, 4);
IB_FIELD(SrqOut, ring, 16, 8);
IB_FIELD(SrqOut, stride, 24, 4);
IB_FIELD(SrqOut, srqn, 28, 4);

IB_SIZE(QpCaps, 24);
IB_FIELD(QpCaps, max_send_wr, 0, 4);
IB_FIELD(QpCaps, max_recv_wr, 4, 4);
IB_FIELD(QpCaps, max_send_sge, 8, 4);
IB_FIELD(QpCaps, max_recv_sge, 12, 4);
IB_FIELD(QpCaps, max_inline, 16, 4);
IB_FIELD(QpCaps, reserved, 20, 4);

IB_SIZE(CreateQpIn, 64);
IB_FIELD(CreateQpIn, type, 0, 4);
IB_FIELD(CreateQpIn, pd, 4, 4);
IB_FIELD(CreateQpIn, send_cq, 8, 4);
IB_FIELD(CreateQpIn, recv_cq, 12, 4);
IB_FIELD(CreateQpIn, srq, 16, 4);
IB_FIELD(CreateQpIn, xrcd, 20, 4);
IB_FIELD(CreateQpIn, caps, 24, 24);
IB_FIELD(CreateQpIn, flags, 48, 4);
IB_FIELD(CreateQpIn, port, 52, 4);
IB_FIELD(CreateQpIn, cookie, 56, 8);

IB_SIZE(QpOut, 48);
IB_FIELD(QpOut, qpn, 0, 4);
IB_FIELD(QpOut, generation, 4, 4);
IB_FIELD(QpOut, caps, 8, 24);
IB_FIELD(QpOut, rq_ring, 32, 8);
IB_FIELD(QpOut, rq_slots, 40, 4);
IB_FIELD(QpOut, rq_stride, 44, 4);

IB_SIZE(OpenQpIn, 16);
IB_FIELD(OpenQpIn, xrcd, 0, 4);
IB_FIELD(OpenQpIn, qpn, 4, 4);
IB_FIELD(OpenQpIn, cookie, 8, 8);

IB_SIZE(QpAttr, 120);
IB_FIELD(QpAttr, state, 0, 4);
IB_FIELD(QpAttr, cur_state, 4, 4);
IB_FIELD(QpAttr, path_mtu, 8, 4);
IB_FIELD(QpAttr, mig_state, 12, 4);
IB_FIELD(QpAttr, qkey, 16, 4);
IB_FIELD(QpAttr, rq_psn, 20, 4);
IB_FIELD(QpAttr, sq_psn, 24, 4);
IB_FIELD(QpAttr, dest_qpn, 28, 4);
IB_FIELD(QpAttr, access, 32, 4);
IB_FIELD(QpAttr, av, 36, 32);
IB_FIELD(QpAttr, alt_av, 68, 32);
IB_FIELD(QpAttr, pkey_index, 100, 2);
IB_FIELD(QpAttr, alt_pkey_index, 102, 2);
IB_FIELD(QpAttr, en_sqd_async_notify, 104, 1);
IB_FIELD(QpAttr, sq_draining, 105, 1);
IB_FIELD(QpAttr, max_rd_atomic, 106, 1);
IB_FIELD(QpAttr, max_dest_rd_atomic, 107, 1);
IB_FIELD(QpAttr, min_rnr_timer, 108, 1);
IB_FIELD(QpAttr, port, 109, 1);
IB_FIELD(QpAttr, timeout, 110, 1);
IB_FIELD(QpAttr, retry_cnt, 111, 1);
IB_FIELD(QpAttr, rnr_retry, 112, 1);
IB_FIELD(QpAttr, alt_port, 113, 1);
IB_FIELD(QpAttr, alt_timeout, 114, 1);
IB_FIELD(QpAttr, reserved, 115, 1);
IB_FIELD(QpAttr, rate_limit, 116, 4);

IB_SIZE(ModifyQpIn, 128);
IB_FIELD(ModifyQpIn, index, 0, 4);
IB_FIELD(ModifyQpIn, mask, 4, 4);
IB_FIELD(ModifyQpIn, attr, 8, 120);

IB_SIZE(ModifyQpOut, 8);
IB_FIELD(ModifyQpOut, old_state, 0, 4);
IB_FIELD(ModifyQpOut, state, 4, 4);

IB_SIZE(QueryQpOut, 152);
IB_FIELD(QueryQpOut, attr, 0, 120);
IB_FIELD(QueryQpOut, caps, 120, 24);
IB_FIELD(QueryQpOut, sq_sig_all, 144, 4);
IB_FIELD(QueryQpOut, reserved, 148, 4);

IB_SIZE(McastIn, 24);
IB_FIELD(McastIn, qp, 0, 4);
IB_FIELD(McastIn, mlid, 4, 2);
IB_FIELD(McastIn, reserved, 6, 2);
IB_FIELD(McastIn, mgid, 8, 16);

IB_SIZE(ChangeHcaIn, 136);
IB_FIELD(ChangeHcaIn, node, 0, 64);
IB_FIELD(ChangeHcaIn, ca, 64, 64);
IB_FIELD(ChangeHcaIn, action, 128, 4);
IB_FIELD(ChangeHcaIn, reserved, 132, 4);

IB_SIZE(ChangePartitionIn, 160);
IB_FIELD(ChangePartitionIn, node, 0, 64);
IB_FIELD(ChangePartitionIn, ca, 64, 64);
IB_FIELD(ChangePartitionIn, port, 128, 4);
IB_FIELD(ChangePartitionIn, pkey, 132, 2);
IB_FIELD(ChangePartitionIn, remove, 134, 2);
IB_FIELD(ChangePartitionIn, name, 136, 24);

IB_SIZE(SetPowerIn, 72);
IB_FIELD(SetPowerIn, node, 0, 64);
IB_FIELD(SetPowerIn, state, 64, 4);
IB_FIELD(SetPowerIn, reserved, 68, 4);

IB_SIZE(ChangeDriverIn, 72);
IB_FIELD(ChangeDriverIn, name, 0, 64);
IB_FIELD(ChangeDriverIn, unload, 64, 4);
IB_FIELD(ChangeDriverIn, reserved, 68, 4);

}  // namespace ib::verbs::control
